-- Streamed chat requests: 1 KB in, 50 events out; each must end in [DONE].
local make = require("body")
make.install()
local bytes
function init() bytes = make.request(make.chat(1024, true, 50)) end
function request() return bytes end
function response(status, headers, body) make.check(status, body, true) end
