-- The request of unary_1k, to be refused with the status STATUS: asks for the model MODEL. Another status counts as bad.
local make = require("body")
make.install()
local bytes, want
function init()
  want = tonumber(os.getenv("STATUS"))
  bytes = make.request((string.gsub(make.chat(1024, false, 50), '"model":"chat"', '"model":"' .. os.getenv("MODEL") .. '"')))
end
function request() return bytes end
function response(status) if status ~= want then bad_status = bad_status + 1 end end
