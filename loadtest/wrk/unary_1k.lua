-- Unary chat requests with a body of 1024 bytes.
local make = require("body")
make.install()
local bytes
function init() bytes = make.request(make.chat(1024, false, 50)) end
function request() return bytes end
function response(status, headers, body) make.check(status, body, false) end
