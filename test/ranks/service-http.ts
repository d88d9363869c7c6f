/**
 * Workers of an HTTP server under `node:cluster`, which can be killed at any time: `service-http.js NAME PORT WORKERS`.
 * The primary prints `listens PID` for each that does. A request for a user is counted in all that workers share, in
 * this order: the counter `hits`, the map `users`, a ledger of two accounts under a mutex. Its answer says the process
 * and how often the user was seen.
 */
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Service } from 'onesided/service';

const [name, port, workers] = process.argv.slice(2) as [string, string, string];
const service = await Service.join(name);
if (cluster.isPrimary) {
  cluster.on('listening', ({ process: { pid } }) => console.log(`listens ${pid}`));
  cluster.on('exit', (_, code, signal) => {
    // Only kills are expected.
    if (signal !== 'SIGKILL') process.exit(code || 1);
    cluster.fork();
  });
  for (let i = 0; i < Number(workers); i++) cluster.fork();
} else {
  const hits = await service.counter('hits');
  const users = await service.map<number>('users', { bytes: 1 << 20 });
  const mutex = await service.mutex('accounts');
  const ledger = (await service.window('ledger', Int32Array, 2)).sharedQuery(0);
  const server = createServer(async (request, response) => {
    hits.add();
    const seen = users.update(request.url!, (before) => (before ?? 0) + 1);
    const held = await mutex.lock();
    // Whoever died in between has counted in the first account only.
    if (held.abandoned !== undefined) ledger[1] = ledger[0];
    ledger[0]++;
    // Some worker is nearly always here, so that one in four dies here.
    await sleep(1);
    ledger[1]++;
    held.release();
    response.end(JSON.stringify({ pid: process.pid, seen }));
  });
  // Only kills end connections.
  server.keepAliveTimeout = 0;
  server.listen(Number(port), '127.0.0.1');
}
