// Included first by the faulty copy of policies/.
#pragma once

namespace headgate {

extern int planted;  // which fault of faults.cmake is in force, from 1; 0: none

}  // namespace headgate
