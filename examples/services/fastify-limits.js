/**
 * A rate limit of fastify that is exact over all workers: `npm install fastify`, then
 *
 *     node examples/services/fastify-limits.js [port]
 */
import cluster from 'node:cluster';
import fastify from 'fastify';
import { Service } from 'onesided/service';

const service = await Service.join('fastify-limits');
if (cluster.isPrimary) {
  for (let i = 0; i < 4; i++) cluster.fork();
  cluster.on('exit', () => cluster.fork());
} else {
  // 100 requests of each address in any second.
  const limiter = await service.limiter('requests', { rate: 100, per: 1000, algorithm: 'sliding-window' });
  const app = fastify();
  app.addHook('onRequest', async (request, reply) => {
    const { allowed, remaining, retryAfter } = limiter.take(request.ip);
    reply.header('X-RateLimit-Remaining', remaining);
    if (!allowed)
      return reply
        .code(429)
        .header('Retry-After', Math.ceil(retryAfter / 1000))
        .send({ retryAfter });
  });
  app.get('/', async () => ({ place: service.place }));
  await app.listen({ port: Number(process.argv[2] ?? 8080) });
}
