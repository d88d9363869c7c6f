/**
 * autocannon in a process of its own: `http-load.js PORT SECONDS`. Each request is of the next of the sessions.
 * Prints requests a second, and the time that 99 of 100 took at most (ms).
 */
import autocannon from 'autocannon';
import { KEYS } from './operations.ts';

const CONNECTIONS = 32;
const [port, seconds] = process.argv.slice(2).map(Number);
const found = await autocannon({
  url: `http://127.0.0.1:${port}`,
  connections: CONNECTIONS,
  duration: seconds,
  requests: Array.from({ length: KEYS }, (_, i) => ({ path: `/${i}` })),
});
const failed = found.errors + found.non2xx;
if (failed > 0 || found['2xx'] === 0) throw new Error(`${failed} requests of ${found.requests.total} failed`);
console.log(JSON.stringify({ perSecond: found['2xx'] / found.duration, p99: found.latency.p99 }));
