-- Shared by the scripts beside it: bodies of a given size, and counts of what is not 200 or not whole. A check of the
-- end of every stream is cheap here: wrk hands the body over anyway.
local M = {}

-- A chat request whose body has exactly `bytes` bytes.
function M.chat(bytes, stream, max_tokens)
  local head = '{"model":"chat","max_tokens":' .. max_tokens .. ',"stream":' .. tostring(stream) ..
               ',"messages":[{"role":"user","content":"'
  local tail = '"}]}'
  local words = string.rep("word ", math.ceil(bytes / 5))
  return head .. string.sub(words, 1, bytes - #head - #tail) .. tail
end

function M.request(body)
  local headers = {["Content-Type"] = "application/json", ["Host"] = wrk.headers["Host"] or wrk.host}
  local key = os.getenv("HEADGATE_KEY")
  if key then headers["Authorization"] = "Bearer " .. key end
  return wrk.format("POST", "/v1/chat/completions", headers, body)
end

-- wrk runs each thread in a Lua of its own; done() reads the counters of all.
local threads = {}
function M.install()
  bad_status, bad_end = 0, 0
  function setup(thread) table.insert(threads, thread) end
  function done(summary, latency, requests)
    local status, ends = 0, 0
    for _, thread in ipairs(threads) do
      status = status + thread:get("bad_status")
      ends = ends + thread:get("bad_end")
    end
    local e = summary.errors
    io.write(string.format("RESULT %d %d %d %d %d %d %.0f %.0f %.0f %.0f %.0f\n", summary.requests, summary.duration,
      status, ends, e.connect + e.read + e.write + e.timeout, summary.bytes,
      latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9), latency.max))
  end
end

function M.check(status, body, stream)
  if status ~= 200 then
    bad_status = bad_status + 1
  elseif stream and not string.find(body, "data: [DONE]", -64, true) then
    bad_end = bad_end + 1
  end
end

return M
