/**
 * `npm run bench -- --types`: what each communication call with its flush takes, by the type of the elements and by
 * whether a program uses the same arrays again (ranks/types.ts), where memory is shared and by requests. Nanoseconds,
 * the least of the samples: on a busy machine it is the time of the call. A type that takes more than 1.3 times the
 * best of its line has a `*`.
 *
 *     npm run bench -- --types [--samples 15] [--way shared|requests] [--filter CALL]
 *
 *   --samples N     samples of 3 ms
 *   --way WAY       one of the two ways only
 *   --filter CALL   calls whose name contains this
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { inRange, oneOf, orExplain, wholeNumber } from './options.ts';
import { ROOT, run } from './programs.ts';
import { digits } from './table.ts';

const TYPES = ['Int32', 'Uint32', 'Float32', 'BigInt64', 'BigUint64', 'Float64'];
const WAYS: Readonly<Record<string, NodeJS.ProcessEnv>> = {
  shared: {},
  requests: { ONESIDED_DEBUG: 'requests' },
};
/** What a type may take of the best. */
const MOST = 1.3;

const values = orExplain(
  () => {
    const { values } = parseArgs({
      options: {
        types: { type: 'boolean' },
        samples: { type: 'string', default: '15' },
        way: { type: 'string' },
        filter: { type: 'string', default: '' },
      },
    });
    inRange('--samples', wholeNumber(values.samples), 1, 1000);
    if (values.way !== undefined) oneOf('--way', values.way, Object.keys(WAYS));
    return values;
  },
  fileURLToPath(import.meta.url),
);

interface Report {
  readonly samples: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>;
}

async function measure(type: string, env: NodeJS.ProcessEnv): Promise<Report> {
  const program = join(ROOT, 'build/programs/bench/ranks/types.js');
  const launch = [join(ROOT, 'dist/cli/main.js'), 'run', '-n', '2', '--no-prefix', '--timeout', '100', program, '--'];
  const out = await run(process.execPath, [...launch, type, values.samples, '3', values.filter], { env });
  return JSON.parse(out.split('\n').find((line) => line.startsWith('{'))!) as Report;
}

const line = (name: string, cells: readonly string[]): string =>
  `${name.padEnd(28)}${cells.map((cell) => cell.padStart(11)).join('')}`.trimEnd();

for (const [way, env] of Object.entries(WAYS)) {
  if (values.way !== undefined && values.way !== way) continue;
  const rows = new Map<string, Map<string, number>>();
  for (const type of TYPES) {
    for (const [call, arrays] of Object.entries((await measure(type, env)).samples)) {
      for (const [which, samples] of Object.entries(arrays)) {
        const name = `${call}, ${which}`;
        rows.set(name, (rows.get(name) ?? new Map<string, number>()).set(type, Math.min(...samples)));
      }
    }
  }
  console.log(line(way === 'shared' ? 'shared memory, ns' : 'by requests, ns', TYPES));
  for (const [name, times] of rows) {
    const most = MOST * Math.min(...times.values());
    const cellOf = (time: number | undefined): string =>
      time === undefined ? '' : `${time > most ? '*' : ''}${digits(time)}`;
    console.log(
      line(
        name,
        TYPES.map((type) => cellOf(times.get(type))),
      ),
    );
  }
}
