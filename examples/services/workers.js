// @ts-check
/**
 * Four workers behind one port that share a counter, a map of sessions and a rate limiter, and that can crash:
 *
 *     node examples/services/workers.js [--port 8080] [--workers 4]
 *     pm2 start examples/services/ecosystem.config.cjs      then: pm2 reload workers
 *     systemctl start workers                               with workers.service; then: systemctl reload workers
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

  let isEnding = false;
  const workers = () => Object.values(cluster.workers ?? {});
  cluster.on('exit', (_, code) => {
    if (isEnding && workers().length === 0) process.exit();
    // Who ends with 0 was asked to.
    if (!isEnding && code !== 0) cluster.fork();
  });
  // Each worker is replaced, and ends when its successor listens.
  process.on('SIGHUP', () => {
    for (const old of workers()) cluster.fork().once('listening', () => old?.process.kill('SIGINT'));
  });
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      isEnding = true;
      for (const worker of workers()) worker?.process.kill('SIGINT');
    });
  }
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

  process.on('SIGINT', () => {
    if (isEnding) return;
    isEnding = true;
    // No new connections. `server.close` would also end those that wait for a request, which may be on its way.
    Server.prototype.close.call(server, async () => {
      await service.leave();
      process.exit();
    });
    setTimeout(() => server.closeIdleConnections(), 1000).unref();
  });
}
