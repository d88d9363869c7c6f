/**
 * Not a rank, but a launcher: runs thread ranks again and again that are terminated in the midst of whatever they do.
 * `--times=N --seed=N`.
 */
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { argument } from './support/cases.ts';
import { Random } from './support/random.ts';

const THREADS = new URL('../../../../dist/launcher/threads.js', import.meta.url).href;
const { runThreads } = (await import(THREADS)) as typeof import('../../src/launcher/threads.ts');
const seed = Number(argument('seed'));
const random = new Random(seed);
const sink = new PassThrough().resume();
const codes: Record<string, number> = {};
for (let time = 0; time < Number(argument('times')); time++) {
  const { exitCode, failure } = await runThreads({
    size: random.pick([2, 3, 4]),
    script: fileURLToPath(new URL('./robust-kill.js', import.meta.url)),
    args: [`--seed=${random.below(1_000_000)}`, '--victim=-1', '--place=nowhere', '--ending=rethrow'],
    timeout: random.between(20, 400) / 1000,
    output: { stdout: sink, stderr: sink },
  });
  const how = `${failure?.kind} ${exitCode}`;
  codes[how] = (codes[how] ?? 0) + 1;
}
console.log(JSON.stringify(codes));
