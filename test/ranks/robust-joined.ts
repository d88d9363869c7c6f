/**
 * A process that joins a job and was not started by `onesided run`: `--job=NAME --size=N` by name, without them as the
 * environment says (a process manager's, or ONESIDED_ROOT_ADDRESS).
 * `--how=work|again|loop|leave|stay|rejoin|misfit --timeout=MS`. It prints what happens to it as lines of JSON, with
 * the time.
 *
 * `stay` is in the job until SIGUSR2, finalizes then, and lives on; `rejoin` finalizes and joins the same job again;
 * `misfit` asks for a provider that there is not, and lives on when it has been refused.
 */
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { init, Lock, Op, type RmaError, Window } from 'onesided';
import { argument } from './support/cases.ts';

function tell(what: object): void {
  writeSync(1, `${JSON.stringify({ ...what, at: Date.now() })}\n`);
}

tell({ pid: process.pid });
try {
  const timeout = Number(argument('timeout') ?? 0);
  const job = argument('job');
  const join = () => init(job === undefined ? { timeout } : { job, size: Number(argument('size')), timeout });
  if (argument('how') === 'misfit') process.env['ONESIDED_PROVIDER'] = 'none';
  const world = await join().catch(async (error: RmaError) => {
    if (argument('how') === 'misfit') {
      tell({ failed: error.code });
      await new Promise((resolve) => setTimeout(resolve, 100_000));
    }
    if (argument('how') !== 'again') throw error;
    tell({ failed: error.code });
    return join();
  });
  if (argument('how') === 'stay') {
    const told = once(process, 'SIGUSR2');
    const alive = setInterval(() => {}, 1000);
    tell({ rank: world.rank, size: world.size });
    await told;
    await world.finalize();
    tell({ done: true });
    await once(process, 'SIGUSR2');
    clearInterval(alive);
    process.exit(0);
  }
  const inherited = Object.keys(process.env).filter((name) => /^ONESIDED_(RANK|SIZE|ROOT_ADDRESS|SECRET)$/.test(name));
  tell({ rank: world.rank, size: world.size, inherited });
  if (argument('how') === 'rejoin') {
    await world.finalize();
    const second = await join();
    tell({ again: second !== world, rank: second.rank });
    second.barrierSync();
    await second.finalize();
    tell({ done: true });
    process.exit(0);
  }
  const window = await Window.allocate(world, Float64Array, world.size);
  const next = (world.rank + 1) % world.size;
  const sum = new Float64Array(1);
  if (argument('how') === 'leave') process.exit(0);
  for (let round = 0; round === 0 || argument('how') === 'loop'; round++) {
    await window.fence();
    window.put(Float64Array.of(round), next, world.rank);
    await window.fence();
    const before = (world.rank + world.size - 1) % world.size;
    if (window.local[before] !== round) throw new Error(`round ${round}: found ${window.local[before]}`);
    await window.lock(0, Lock.EXCLUSIVE);
    window.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
    await window.unlock(0);
    world.barrierSync();
    await world.allreduce(Float64Array.of(1), sum, Op.SUM);
    if (sum[0] !== world.size) throw new Error(`the sum is ${sum[0]}`);
    if (round === 0) tell({ working: true });
  }
  await window.free();
  await world.finalize();
  tell({ done: true });
} catch (error) {
  const { code, message } = error as RmaError;
  tell({ code: code ?? String(error), message });
}
