/**
 * A member where something is scarce: `service-limits.js NAME BYTES` makes one thing of each kind, of about so many
 * bytes, uses it, and prints for each call `ok`, or the code and the message of its error.
 */
import { Op } from 'onesided';
import { Service } from 'onesided/service';

const [name, size] = process.argv.slice(2) as [string, string];
const bytes = Number(size);

async function tried<T>(call: string, body: () => Promise<T>): Promise<T | undefined> {
  try {
    const result = await body();
    console.log(JSON.stringify({ call, outcome: 'ok' }));
    return result;
  } catch (error) {
    const { code, message, cause } = error as { code?: string; message: string; cause?: Error };
    console.log(JSON.stringify({ call, outcome: code ?? 'none', message, cause: cause?.message }));
    return undefined;
  }
}

const service = await tried('join', () => Service.join(name));
if (service !== undefined) {
  await tried('counter', async () => (await service.counter('counter')).add());
  await tried('mutex', async () => (await (await service.mutex('mutex')).lock()).release());
  await tried('queue', async () => {
    const queue = await service.queue('queue', Float64Array, Math.ceil(bytes / 16));
    await queue.push(Float64Array.of(1));
  });
  await tried('map', async () => {
    const map = await service.map<Uint8Array>('map', { bytes, codec: 'bytes' });
    const value = new Uint8Array(Math.min(4096, bytes >> 7)).fill(1);
    for (let i = 0; i < bytes / value.length; i++) map.set(`key ${i}`, value);
  });
  await tried('limiter', async () => (await service.limiter('limiter', { rate: 10, per: 1000 })).take('key'));
  await tried('window', async () => {
    const win = await service.window('window', Float64Array, Math.ceil(bytes / 32));
    for (let place = 0; place < 4; place++) win.accumulate(new Float64Array(win.length).fill(1), place, 0, Op.SUM);
  });
  await tried('leave', () => service.leave());
}
