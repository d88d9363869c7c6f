/**
 * A worker of an HTTP server under `node:cluster`. For each request it reads the session of its user and a fragment of
 * a page, 200 bytes each, from what the workers share, counts in the session, and writes it: what a session store and a
 * cache are asked for. Its arguments: the store, where that is, and the port.
 */
import { createServer } from 'node:http';
import { fill, keys, type StoreName } from './operations.ts';
import { openStore } from './stores.ts';

const [name, place, port] = process.argv.slice(2) as [StoreName, string, string];
const store = await openStore(name, place, true);
if (process.env['ONESIDED_BENCH_FIRST'] !== undefined || name === 'Map') await fill(store);

interface Session {
  readonly views?: number;
}

const server = createServer(async (request, response) => {
  try {
    const key = keys[Number(request.url!.slice(1))];
    const session = (await store.get(key)) as Session;
    const page = (await store.getBytes(key)) as { readonly length: number };
    const views = (session.views ?? 0) + 1;
    await store.set(key, { ...session, views });
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ views, page: page.length }));
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
server.listen(Number(port), '127.0.0.1', () => process.send!({ listens: true }));
process.on('message', async (message: { stop?: true }) => {
  if (message.stop === undefined) return;
  server.close();
  server.closeAllConnections();
  await store.close();
  process.exit();
});
