// @ts-check
/**
 * Four workers behind one port that share a counter, a map of sessions and a rate limiter, and that can crash:
 *
 *     node examples/services/workers.js [--port 8080] [--workers 4]
 *     pm2 start examples/services/workers.js -i 4 --wait-ready -- --port 8080      then: pm2 reload workers
 *
 *     curl localhost:8080/          counts, in all workers together
 *     curl localhost:8080/crash     ends the worker that gets it; the others go on, and a new one takes its place
 */
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { Server } from 'node:net';
import { parseArgs } from 'node:util';
import { Service } from 'onesided/service';

const { values } = parseArgs({
  options: { port: { type: 'string', default: '8080' }, workers: { type: 'string', default: '4' } },
});

if (cluster.isPrimary) {
  // The memory stays while this process lives, also when all workers have crashed at once.
  await Service.join(`workers-${values.port}`);
  for (let i = 0; i < Number(values.workers); i++) cluster.fork();
  cluster.on('exit', () => cluster.fork());
} else {
  const service = await Service.join(`workers-${values.port}`);
  const hits = await service.counter('hits');
  /** @type {import('onesided/service').SharedMap<{ seen: number }>} */
  const sessions = await service.map('sessions', { bytes: 16 << 20, ttl: 3_600_000 });
  const limiter = await service.limiter('requests', { rate: 100_000, per: 1000 });

  let isEnding = false;
  const server = createServer((request, response) => {
    // Then the client sends its next request to another worker.
    if (isEnding) response.setHeader('Connection', 'close');
    const { allowed, retryAfter } = limiter.take(request.socket.remoteAddress ?? '');
    if (!allowed) {
      response.writeHead(429, { 'Retry-After': Math.ceil(retryAfter / 1000) }).end();
      return;
    }
    if (request.url === '/crash') process.exit(1);
    const user = new URL(request.url ?? '/', 'http://localhost').searchParams.get('user') ?? 'nobody';
    const session = sessions.update(user, (before) => ({ seen: (before?.seen ?? 0) + 1 }));
    response.end(`${JSON.stringify({ place: service.place, hits: hits.add() + 1, user, ...session })}\n`);
  });
  // pm2 reload ends the worker before this one when this one is ready.
  server.listen(values.port, () => process.send?.('ready'));

  process.once('SIGINT', () => {
    isEnding = true;
    // No new connections. `server.close` would also end those that wait for a request, which may be on its way.
    Server.prototype.close.call(server, async () => {
      await service.leave();
      process.exit();
    });
    setTimeout(() => server.closeIdleConnections(), 1000).unref();
  });
}
