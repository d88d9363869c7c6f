/**
 * How fast modelled fabrics are simulated, beside SimGrid, if that is installed (Debian: g++ libsimgrid-dev).
 *
 *     npm run bench:simulator -- [--rounds 3] [--json FILE]
 *
 * A row is the median of the rounds. SimGrid's row is a message of 8 bytes between actors on 64 hosts of its default
 * network model, ours a put of 8 bytes on the fabric `infinihost-64`: neither does what the other does (SimGrid shares
 * bandwidth among flows, we post work requests, move bytes and look at completions), but both are what a program pays
 * for one small message.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inRange, orExplain, wholeNumber } from '../options.ts';
import { ROOT, run } from '../programs.ts';
import { Progress } from '../progress.ts';
import { median } from '../statistics.ts';
import { MESSAGES, type Part, RANKS } from './parts.ts';

interface Measured {
  readonly seconds: number;
  /** With making the window and its end; of our programs. */
  readonly wholeSeconds?: number;
  readonly gibibytes: number;
}

const { rounds, json } = orExplain(() => {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '3' }, json: { type: 'string' } },
  });
  const given = wholeNumber(values.rounds);
  inRange('--rounds', given, 1, 100);
  return { rounds: given, json: values.json };
});

const simgrid = await compileSimGrid();
const programs: Readonly<Record<string, () => Promise<string>>> = {
  ...Object.fromEntries(Object.keys(RANKS).map((part) => [part, () => ours(part as Part)])),
  ...(simgrid !== undefined && { simgrid: () => run(simgrid, [`${RANKS.messages}`, `${MESSAGES}`]) }),
};

const found: Record<string, Measured[]> = {};
let done = 0;
const progress = new Progress('simulator', rounds * Object.keys(programs).length, process.stdout.isTTY === true);
for (let round = 0; round < rounds; round++) {
  for (const [name, program] of Object.entries(programs)) {
    found[name] ??= [];
    found[name].push(JSON.parse(await program()) as Measured);
    progress.update(++done);
  }
}
progress.stop();

const secondsOf = (name: string): number => median(found[name].map(({ seconds }) => seconds));
const memoryOf = (name: string): number => Math.max(...found[name].map(({ gibibytes }) => gibibytes));
const rateOf = (name: string): number => (RANKS.messages * MESSAGES) / secondsOf(name);
const rows = [
  ['puts of 8 bytes per second', rateOf('messages')],
  ...(simgrid === undefined
    ? []
    : ([
        ['messages of 8 bytes per second in SimGrid', rateOf('simgrid')],
        ['ratio to SimGrid', rateOf('messages') / rateOf('simgrid')],
      ] as const)),
  [`remote-notify fence with a put each, ${RANKS.fence} ranks, s`, secondsOf('fence')],
  ['the same with creating the window, s', median(found['fence'].map(({ wholeSeconds = 0 }) => wholeSeconds))],
  [`dissemination barrier, ${RANKS.barrier} ranks, s`, secondsOf('barrier')],
  ['the same, memory in GiB', memoryOf('barrier')],
] as const;
for (const [what, value] of rows) {
  const number = value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
  console.log(what.padEnd(60), number.padStart(12));
}
if (simgrid === undefined)
  console.log('SimGrid is not installed, so there is no comparison: apt-get install g++ libsimgrid-dev');
if (json !== undefined)
  writeFileSync(json, `${JSON.stringify({ ranks: RANKS, messages: MESSAGES, found }, null, 1)}\n`);

function ours(part: Part): Promise<string> {
  return run(process.execPath, [join(ROOT, 'build/programs/bench/simulator/program.js'), part]);
}

async function compileSimGrid(): Promise<string | undefined> {
  if (!existsSync('/usr/include/simgrid/s4u.hpp')) return undefined;
  const binary = join(ROOT, 'build/peers/simgrid');
  mkdirSync(join(ROOT, 'build/peers'), { recursive: true });
  await run('g++', ['-O2', '-std=c++17', '-o', binary, join(ROOT, 'bench/peers/simgrid.cc'), '-lsimgrid']);
  return binary;
}
