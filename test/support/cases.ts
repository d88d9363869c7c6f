/** The cases of a program of test/ranks as tests of their own, all of which one job runs. */
import { spawnSync } from 'node:child_process';
import { beforeAll, describe, test } from 'vitest';
import type { Described } from '../ranks/support/selections.ts';
import { argumentsOf, followRanks, programOf, type RanksOptions } from './ranks.ts';

/** What the programs said that they would run, by their command. */
const listed = new Map<string, readonly Described[]>();

/** The cases that a program runs with these options, in order. It starts no job. */
export function casesIn(
  program: string,
  options: Pick<RanksOptions, 'args' | 'cases' | 'env'> = {},
): readonly Described[] {
  const args = argumentsOf(options);
  const env = options.env ?? {};
  const key = JSON.stringify([program, args, env]);
  const known = listed.get(key);
  if (known !== undefined) return known;
  const command = [programOf(program), ...args, '--list'];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw new Error(`exit code ${status} of node ${command.join(' ')}\n${stderr}${stdout}`);
  const cases = JSON.parse(stdout) as Described[];
  listed.set(key, cases);
  return cases;
}

/** Runs `test/ranks/PROGRAM.ts` once; each of its cases is a test, which passes if the case has passed at all ranks. */
export function describeCases(title: string, program: string, options: RanksOptions): void {
  describe(title, () => {
    const names = casesIn(program, options).map((one) => one.title);
    const passed = new Map<string, number>();
    let failure: Error | undefined;
    beforeAll(async () => {
      const job = await followRanks(program, options);
      failure = job.failure;
      for (const lines of job.lines) {
        for (const line of lines) {
          const name = (line as { readonly passed?: string }).passed;
          if (name !== undefined) passed.set(name, (passed.get(name) ?? 0) + 1);
        }
      }
    });
    const isPassed = (name: string): boolean => passed.get(name) === options.size;
    for (const name of names) {
      test(name, () => {
        if (isPassed(name)) return;
        if (failure === undefined) throw new Error('not all ranks have run this case');
        const { message } = failure;
        const unpassed = names.filter((other) => !isPassed(other));
        const guilty = unpassed.find((other) => message.includes(`case "${other}" failed on rank`)) ?? unpassed[0];
        throw name === guilty ? failure : new Error(`did not end: the job ended in the case "${guilty}"`);
      });
    }
    test('and the job ends well', () => {
      if (failure !== undefined) throw failure;
    });
  });
}
