/**
 * A rank of `onesided run --hosts`: joins, puts to its neighbour, and does what `--how` says. `work`: says what it has
 * seen. `hang`: rank 1 leaves the others waiting. `kill`: rank 3 does so by SIGKILL. `never`, `early`: rank 1 ends
 * before it has joined, with code 0 or 7. `abort`: rank 2 ends the job. `whole`: rank 2 exits with a code of nine bits;
 * `--for` says how many milliseconds that takes it.
 */
import { init, Window } from 'onesided';
import { argument } from './support/cases.ts';

const how = argument('how');
const told = process.env['ONESIDED_RANK'];
if (told === '1' && how === 'never') process.exit(0);
if (told === '1' && how === 'early') process.exit(7);
if (told === '1' && how === 'late') await new Promise((resolve) => setTimeout(resolve, 600_000));
const world = await init();
const { rank, size } = world;
if (how === 'hang' && rank === 1) {
  console.log('working');
  setInterval(() => {}, 1000);
} else {
  if (how === 'kill' && rank === 3) process.kill(process.pid, 'SIGKILL');
  if (how === 'whole' && rank === 2) {
    process.on('exit', () => {
      const end = performance.now() + Number(argument('for') ?? 0);
      while (performance.now() < end);
    });
    process.exit(256);
  }
  if (how === 'abort' && rank === 2) world.abort(9);
  if (how === 'hang') console.log('waiting');
  const window = await Window.allocate(world, Int32Array, 1);
  await window.fence();
  window.put(Int32Array.of(rank + 1), (rank + 1) % size, 0);
  await window.fence();
  const left = ['ONESIDED_CARDS_FD', 'ONESIDED_CONTROL_FD', 'ONESIDED_RANK'].filter((name) => name in process.env);
  console.log(JSON.stringify({ rank, size, got: window.local[0], cwd: process.cwd(), left, parent: process.ppid }));
  await window.free();
  await world.finalize();
}
