// @ts-check
/**
 * An HTTP service of several processes with shared state: how many requests each user has made in this period (a rate
 * limiter), and how many points each has (a leaderboard). Both are in windows; no process asks another one.
 *
 *     npx onesided run -n 4 examples/http-service.js                 tests it under load, and counts
 *     npx onesided run -n 4 examples/http-service.js -- --port 8080  serves on ports 8080 … 8083
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { init, Op, Window } from 'onesided';

const { values } = parseArgs({ options: { port: { type: 'string' } } });
const [USERS, LIMIT, PERIOD_MS, REQUESTS] = [10, 25, 1000, 50];

const world = await init();
const { rank, size } = world;
/** By user, at rank user % size: the period (26 bits, in seconds two years) and the requests admitted in it (6). */
const buckets = await Window.allocate(world, Uint32Array, USERS, { name: 'buckets' });
const points = await Window.allocate(world, Float64Array, USERS, { name: 'points' });
await buckets.lockAll();
await points.lockAll();

/** When the service began, the same for all ranks: periods are counted from here. */
const began = Float64Array.of(Date.now());
await world.broadcast(began, 0);

/** @param {number} user whether it may do one more request, and in which period: none before the bucket's */
async function admit(user) {
  const now = Math.floor((Date.now() - began[0]) / PERIOD_MS);
  const before = new Uint32Array(1);
  let seen = 0;
  for (;;) {
    const period = Math.max(now, seen >>> 6);
    const used = seen >>> 6 === period ? seen & 0x3f : 0; // the bucket is of an older period
    if (used === LIMIT) return { admitted: false, period };
    const next = Uint32Array.of(((period << 6) | (used + 1)) >>> 0);
    buckets.compareAndSwap(next, Uint32Array.of(seen), before, user % size, user);
    await buckets.flush(user % size);
    if (before[0] === seen) return { admitted: true, period };
    seen = before[0]; // another request was admitted meanwhile: try again from the current value
  }
}

/** @param {number} user */
async function pointsOf(user) {
  const own = new Float64Array(1);
  points.fetchAndOp(new Float64Array(1), own, user % size, user, Op.NO_OP);
  await points.flush(user % size);
  return { user, points: own[0] };
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const user = Number(url.searchParams.get('user') ?? -1);
  if (url.pathname === '/leaderboard') {
    const all = await Promise.all(Array.from({ length: USERS }, (_, user) => pointsOf(user)));
    response.end(JSON.stringify(all.sort((a, b) => b.points - a.points)));
  } else if (url.pathname === '/play' && Number.isInteger(user) && user >= 0 && user < USERS) {
    const { admitted, period } = await admit(user);
    if (admitted) points.accumulate(Float64Array.of(1 + (user % 3)), user % size, user, Op.SUM);
    await points.flush(user % size);
    response.writeHead(admitted ? 200 : 429).end(String(period));
  } else response.writeHead(404).end();
});
await once(server.listen(values.port === undefined ? 0 : Number(values.port) + rank, '127.0.0.1'), 'listening');
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
if (values.port !== undefined) {
  console.log(`http://127.0.0.1:${port}/play?user=1 and /leaderboard`);
  await once(process, 'SIGINT');
} else await load();

await world.barrier(); // no rank needs this rank's server any more, which uses the windows
await points.unlockAll();
await buckets.unlockAll();
server.close();
await points.free();
await buckets.free();
await world.finalize();

/** Every rank asks all servers, eight requests at a time; in the end, every number must be right. */
async function load() {
  const ports = new Int32Array(size);
  await world.allgather(Int32Array.of(port), ports);
  const agent = new Agent({ keepAlive: true });
  const ask = async (/** @type {number} */ server, /** @type {string} */ path) => {
    const [response] = await once(get({ host: '127.0.0.1', port: ports[server], path, agent }), 'response');
    return { status: response.statusCode, body: await text(response) };
  };
  // By period and user: how many requests were made, and how many were admitted.
  const [asked, admitted] = [new Float64Array(1000 * USERS), new Float64Array(1000 * USERS)];
  await Promise.all(
    Array.from({ length: 8 }, async (_, client) => {
      for (let i = 0; i < REQUESTS; i++) {
        const user = (i * i + client) % USERS;
        const { status, body } = await ask((i + client) % size, `/play?user=${user}`);
        asked[Number(body) * USERS + user]++;
        if (status === 200) admitted[Number(body) * USERS + user]++;
      }
    }),
  );
  const [allAsked, allAdmitted] = [asked.slice(), admitted.slice()];
  await world.allreduce(asked, allAsked, Op.SUM);
  await world.allreduce(admitted, allAdmitted, Op.SUM);
  assert.deepEqual(
    allAdmitted,
    allAsked.map((count) => Math.min(LIMIT, count)),
  );
  const { body } = await ask((rank + 1) % size, '/leaderboard');
  const count = (/** @type {number} */ user) =>
    allAdmitted.filter((_, i) => i % USERS === user).reduce((a, b) => a + b);
  for (const { user, points } of JSON.parse(body)) assert.equal(points, count(user) * (1 + (user % 3)));
  const [requests, granted] = [allAsked, allAdmitted].map((all) => all.reduce((a, b) => a + b));
  if (rank === 0) console.log(`${requests} requests to ${size} servers, ${granted} admitted: all counts are exact`);
  agent.destroy();
}
