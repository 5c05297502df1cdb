// Headgate as the official OpenAI client sees it: the real library, the real gateway, mock model servers behind it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';

const binary = process.env.HEADGATE_BINARY;
const children = [];
let client, anonymous, mockPort, folder;

const freePort = () => new Promise((resolve) => {
  const server = net.createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

function start(...args) {
  const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  children.push(child);
}

async function answers(url) {
  for (const end = Date.now() + 20000; Date.now() < end;) {
    const ok = await fetch(url).then((r) => r.ok, () => false);
    if (ok) return;
    await new Promise((r) => setTimeout(r, 20));
  }
  throw new Error(`${url} did not answer`);
}

const control = (fault) => fetch(`http://127.0.0.1:${mockPort}/control`, { method: 'POST', body: JSON.stringify(fault) });
const hello = [{ role: 'user', content: 'one two three' }];

before(async () => {
  const [data, admin, mock] = [await freePort(), await freePort(), await freePort()];
  mockPort = mock;
  folder = mkdtempSync(join(tmpdir(), 'headgate-client-'));
  const config = join(folder, 'headgate.jsonc');
  writeFileSync(config, JSON.stringify({
    listen: { data: `127.0.0.1:${data}`, admin: `127.0.0.1:${admin}` },
    log: { access: 'off' },
    keys: [{ name: 'tests', key: 'sk-tests' }],
    pools: { p: { model: 'mock-model', backends: [{ name: 'u1', url: `http://127.0.0.1:${mock}` }] } },
    routes: { chat: { pools: ['p'], retry: { attempts_max: 1 } } },
  }));
  start('mock', '--port', String(mock), '--profile', 'instant');
  await answers(`http://127.0.0.1:${mock}/health`);
  start('serve', '--config', config);
  await answers(`http://127.0.0.1:${admin}/readyz`);
  const baseURL = `http://127.0.0.1:${data}/v1`;
  client = new OpenAI({ baseURL, apiKey: 'sk-tests', maxRetries: 0 });
  anonymous = new OpenAI({ baseURL, apiKey: 'sk-wrong', maxRetries: 0 });
});

after(() => {
  for (const child of children) child.kill();
  rmSync(folder, { recursive: true });
});

test('a chat answer has its text, its usage and its finish reason', async () => {
  const answer = await client.chat.completions.create({ model: 'chat', messages: hello, max_tokens: 7 });
  assert.equal(answer.choices[0].message.content.trim().split(/\s+/).length, 7);
  assert.equal(answer.choices[0].finish_reason, 'length');
  assert.deepEqual([answer.usage.prompt_tokens, answer.usage.completion_tokens], [3, 7]);
});

test('a streamed answer is the same text, and usage comes only when asked for', async () => {
  const unary = await client.chat.completions.create({ model: 'chat', messages: hello, max_tokens: 9 });
  for (const include_usage of [false, true]) {
    const stream = await client.chat.completions.create({ model: 'chat', messages: hello, max_tokens: 9, stream: true, stream_options: { include_usage } });
    let text = '', usage = 0, finish = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? '';
      finish += chunk.choices[0]?.finish_reason === 'length' ? 1 : 0;
      if (chunk.usage) usage = chunk.usage.completion_tokens;
    }
    assert.equal(text, unary.choices[0].message.content);
    assert.equal(finish, 1);
    assert.equal(usage, include_usage ? 9 : 0);
  }
});

test('completions and embeddings', async () => {
  const answer = await client.completions.create({ model: 'chat', prompt: 'one two', max_tokens: 4 });
  assert.equal(answer.usage.completion_tokens, 4);
  const vectors = await client.embeddings.create({ model: 'chat', input: ['a b', 'c'] });
  assert.equal(vectors.data.length, 2);
  assert.ok(vectors.data[0].embedding.every(Number.isFinite) && vectors.data[0].embedding.length > 0);
});

test('models lists the routes', async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.deepEqual(names, ['chat']);
  assert.equal((await client.models.retrieve('chat')).id, 'chat');
});

test('refusals are the error classes the library knows', async () => {
  const ask = (c, model) => c.chat.completions.create({ model, messages: hello });
  await assert.rejects(ask(client, 'nothing'), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
  await assert.rejects(ask(anonymous, 'chat'), (e) => e instanceof OpenAI.AuthenticationError && e.code === 'invalid_api_key');
  await assert.rejects(client.models.retrieve('nothing'), OpenAI.NotFoundError);
});

test('a stream cut in the middle ends as an error, not as a whole answer', async () => {
  await control({ fault: 'reset', after_tokens: 3, count: 1 });
  let pieces = 0;
  const read = async () => {
    const stream = await client.chat.completions.create({ model: 'chat', messages: hello, max_tokens: 20, stream: true });
    for await (const chunk of stream) pieces += chunk.choices[0]?.delta?.content ? 1 : 0;
  };
  await assert.rejects(read(), OpenAI.APIError);
  assert.equal(pieces, 3);
});

test('a backend failure before the first token is a 5xx, and the next request is served', async () => {
  await control({ fault: 'status', status: 500, count: 1 });
  await assert.rejects(client.chat.completions.create({ model: 'chat', messages: hello }), OpenAI.InternalServerError);
  const answer = await client.chat.completions.create({ model: 'chat', messages: hello, max_tokens: 2 });
  assert.equal(answer.usage.completion_tokens, 2);
});
