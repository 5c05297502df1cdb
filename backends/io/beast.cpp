// Beast, compiled once for all.
#include <boost/beast/src.hpp>
