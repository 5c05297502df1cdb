-- Unary chat requests with a body of 16384 bytes.
local make = require("body")
make.install()
local bytes
function init() bytes = make.request(make.chat(16384, false, 50)) end
function request() return bytes end
function response(status, headers, body) make.check(status, body, false) end
