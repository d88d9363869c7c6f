/**
 * Rank 0 broadcasts, while rank 1 looks for it, and then computes: how long that takes rank 0. Each rank prints the
 * lowest quartile of its times, in milliseconds.
 */
import { init } from 'onesided';

const ROUNDS = 80;
/** Longer than rank 1 needs to begin to look, and not so long that it sleeps. */
const LATE_MS = 0.1;
const COMPUTING_MS = 3;

function compute(milliseconds: number): void {
  const since = performance.now();
  while (performance.now() - since < milliseconds);
}

const world = await init();
const { rank } = world;
const word = new Float64Array(1);
const times: number[] = [];
for (let i = 0; i < ROUNDS; i++) {
  world.barrierSync();
  if (rank === 0) compute(LATE_MS);
  const since = performance.now();
  world.broadcastSync(word, 0);
  times.push(performance.now() - since);
  if (rank === 1) compute(COMPUTING_MS);
}
times.sort((x, y) => x - y);
console.log(JSON.stringify({ quartile: times[ROUNDS >> 2] }));
await world.finalize();
