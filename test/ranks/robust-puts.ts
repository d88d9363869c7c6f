/**
 * A process that joins a job as the environment says, and puts many small values into the next rank's part before each
 * flush, of which it reads back some, until something fails. It prints what happens to it as lines of JSON.
 */
import { writeSync } from 'node:fs';
import { init, type RmaError, Window } from 'onesided';

const PUTS = 48;
const LENGTH = 1024;

function tell(what: object): void {
  writeSync(1, `${JSON.stringify({ ...what, at: Date.now() })}\n`);
}

try {
  const world = await init();
  const window = await Window.allocate(world, Float64Array, LENGTH);
  const next = (world.rank + 1) % world.size;
  const found = new Float64Array(PUTS);
  await window.lockAll();
  for (let round = 1; ; round++) {
    const first = (round * PUTS) % (LENGTH - PUTS);
    for (let i = 0; i < PUTS; i++) window.put(Float64Array.of(round + i), next, first + i);
    await window.flush(next);
    if (round % 8 === 0) {
      window.get(found, next, first);
      await window.flush(next);
      if (found.some((value, i) => value !== round + i)) throw new Error(`round ${round}: found ${found.join(' ')}`);
    }
    if (round === 50) tell({ working: true });
  }
} catch (error) {
  const { code, message } = error as RmaError;
  tell({ code: code ?? String(error), message });
}
