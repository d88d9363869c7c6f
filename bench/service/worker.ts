/** A worker of the service rows: makes operations when its parent says which and for how long, and says how many. */
import { fill, type Operation, ROWS, type Store, type StoreName } from './operations.ts';
import { openStore } from './stores.ts';

const [name, place, number] = process.argv.slice(2) as [StoreName, string, string];
const BATCH = 16;

async function measure(store: Store, operation: Operation, ms: number): Promise<number> {
  const end = performance.now() + ms;
  let done = 0;
  if (store.concurrency > 1) {
    await Promise.all(
      Array.from({ length: store.concurrency }, async () => {
        for (; performance.now() < end; done++) await operation(store);
      }),
    );
    return done;
  }
  for (; performance.now() < end; done += BATCH) {
    store.refresh?.();
    for (let i = 0; i < BATCH; i++) operation(store);
  }
  return done;
}

const store = await openStore(name, place);
if (number === '0' || name === 'Map') await fill(store);
process.on('message', async (message: { row?: string; ms?: number; stop?: true }) => {
  if (message.stop) {
    await store.close();
    process.exit();
  }
  if (message.row === undefined) return;
  const { operation } = ROWS.find(({ id }) => id === message.row)!;
  process.send!({ done: await measure(store, operation, message.ms!) });
});
process.send!({ ready: true });
