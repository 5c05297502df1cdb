-- Half unary 1 KB, a quarter unary 16 KB, a quarter streamed.
local make = require("body")
make.install()
local cycle, at
function init()
  local small, large = make.request(make.chat(1024, false, 50)), make.request(make.chat(16384, false, 50))
  local stream = make.request(make.chat(1024, true, 50))
  cycle, at = {small, large, small, stream}, 0
end
function request()
  at = at % 4 + 1
  return cycle[at]
end
function response(status, headers, body)
  -- answers come back in another order than requests left, so the kind is read off the answer
  local kind = headers["content-type"] or headers["Content-Type"] or ""
  make.check(status, body, string.find(kind, "event-stream", 1, true) ~= nil)
end
