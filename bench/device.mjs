/**
 * `npm run bench:rdma`: builds what is missing, boots the guest of scripts/test-rdma.mjs, which has a Soft-RoCE device,
 * and runs device/main.ts in it, which says what its options are.
 *
 *     npm run bench:rdma -- [--json FILE] [--here | --instructions | --supersteps] [--timeout 3600] [options of
 *     device/main.ts]
 *
 *   --json FILE      writes what `npm run bench -- --json` writes
 *   --supersteps     device/supersteps.ts instead: supersteps between two guests, whose cable loses packets; --steps N
 *   --instructions   counts the guest's instructions instead of time: for machines that have other things to do
 *   --here           without a guest: on a device of this machine, which ONESIDED_DEVICE=name:port:gid names
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { orExplain } from '../scripts/explain.mjs';
import { buildWhatIsMissing, root } from './build.mjs';

const { values } = orExplain(
  () =>
    parseArgs({
      options: {
        json: { type: 'string' },
        here: { type: 'boolean', default: false },
        instructions: { type: 'boolean', default: false },
        supersteps: { type: 'boolean', default: false },
        steps: { type: 'string' },
        timeout: { type: 'string', default: '3600' },
        filter: { type: 'string' },
        rounds: { type: 'string' },
        quick: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
      },
    }),
  join(root, 'bench/device/main.ts'),
);
const options = [];
for (const name of ['filter', 'rounds', 'steps'])
  if (values[name] !== undefined) options.push(`--${name}`, values[name]);
for (const name of ['quick', 'check', 'instructions']) if (values[name]) options.push(`--${name}`);
if (values.json !== undefined) options.push('--json');

buildWhatIsMissing();
const peer = join(root, 'build/peers/verbs');
mkdirSync(join(root, 'build/peers'), { recursive: true });
const { status } = spawnSync('cc', ['-O2', '-o', peer, join(root, 'bench/peers/verbs.c'), '-libverbs'], {
  stdio: 'inherit',
});
if (status !== 0) {
  console.error('bench/peers/verbs.c was not compiled, see above; apt-get install gcc libibverbs-dev');
  process.exit(1);
}

const child = values.here
  ? spawn(process.execPath, [join(root, 'build/programs/bench/device/main.js'), ...options], { stdio: piped() })
  : spawn(process.execPath, [join(root, 'scripts/test-rdma.mjs'), '--timeout', values.timeout, ...makeScript()], {
      stdio: piped(),
      env: { ...process.env, ...(values.instructions ? { ONESIDED_GUEST_CLOCK: 'instructions' } : {}) },
    });
let report;
for await (const line of createInterface(child.stdout)) {
  const [, json] = /^(?:\[0\] )?onesided-bench: (\{.*\})\s*$/.exec(line) ?? [];
  if (json === undefined) console.log(line);
  else report = JSON.parse(json);
}
const code = await new Promise((resolve) => {
  if (child.exitCode !== null) resolve(child.exitCode);
  else child.on('exit', resolve);
});
if (report !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, values.supersteps ? 1 : 2)}\n`);
process.exitCode = code ?? 1;

function piped() {
  return ['ignore', 'pipe', 'inherit'];
}

/** Of scripts/test-rdma.mjs: what the guests run, which are told of a script, and of no options; and how many. */
function makeScript() {
  const file = join(root, 'build/bench-rdma.sh');
  const quoted = options.map((option) => `'${option.replaceAll("'", `'\\''`)}'`).join(' ');
  const [script, hosts] = values.supersteps ? ['supersteps', '2'] : ['guest', '1'];
  const text = `cd "$(dirname "$0")/.."\nOPTIONS=(${quoted})\n. bench/device/${script}.sh\n`;
  writeFileSync(file, text);
  return ['--script', relative(root, file), '--hosts', hosts];
}
