/** What `npm run figures -- --sensitivity` changes: numbers that no source gives, and the fabric stays one. */
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadFabric, runTasks } from 'onesided/fabrics';
import { describe, expect, it } from 'vitest';
import { CHAPTERS } from '../../bench/figures/all.ts';
import { changed } from '../../bench/figures/fabrics.ts';
import { describeSensitivity, sensitivityOf, shortSensitivity, unsourced } from '../../bench/figures/sensitivity.ts';
import { temporaryFolder } from '../support/folders.ts';

const FABRICS = [...new Set(CHAPTERS.flatMap(({ fabrics }) => fabrics))];

describe.each(FABRICS)('%s', (name) => {
  it('has numbers without a source, and others', () => {
    const numbers = unsourced(name);
    expect(numbers).toContain('host.copy');
    // Its authors have measured that.
    expect(numbers.includes('host.post')).toBe(name !== 'ethernet-100-switch');
    expect(numbers).not.toContain('node.ranks');
    // Sockets have no such limit: a provider on them does.
    expect(numbers.includes('adapter.maxMessage')).toBe(name.startsWith('ethernet-'));
    // An adapter's product name is no source for what it says of packets, and a whole microsecond is a number.
    expect(numbers.includes('adapter.packet')).toBe(['bsp-ib-16', 'connectx-16-cores', 'infinihost-64'].includes(name));
    // There, a message of a barrier is received by the step that it starts.
    expect(numbers.includes('adapter.receive')).toBe(name !== 'quadrics-elan3');
  });

  it('is a fabric with each of them changed, which other times come out of', async () => {
    const before = loadFabric(name);
    for (const number of unsourced(name)) {
      const [group, field] = number.split('.');
      for (const factor of [0.7, 1.3]) {
        const fabric = changed(before, { number, factor });
        const [was, is] = [before, fabric].map((one) => (one as never)[group][field] as number);
        expect(Math.sign(is - was), number).toBe(Math.sign(factor - 1));
        await runTasks(2, (world) => world.barrier(), { fabric });
      }
    }
  });
});

it('whole numbers stay whole, and others do not become so', () => {
  const fabric = loadFabric('infinihost-64');
  const { host } = changed(loadFabric('infinihost-64'), { number: 'host.interrupt', factor: 0.7 });
  expect(host.interrupt).toBeCloseTo(0.7 * fabric.host.interrupt, 12);
  const { packet } = fabric.adapter;
  expect(changed(fabric, { number: 'adapter.packet', factor: 0.7 }).adapter.packet).toBe(Math.floor(0.7 * packet));
  expect(changed(fabric, { number: 'adapter.packet', factor: 1.3 }).adapter.packet).toBe(Math.ceil(1.3 * packet));
});

it('is told in words', () => {
  const flips = [{ fabric: 'infinihost-64', number: 'host.copy', factor: 0.7 }];
  const of = '';
  expect(describeSensitivity({ numbers: 25, holds: true, of, flips, failed: [] })).toBe(
    'it does not hold with `host.copy` of infinihost-64 at −30 %; ' +
      'else the same with each of 25 numbers at −30 % and +30 %',
  );
  const none = { numbers: 25, holds: false, of, flips: [], failed: [] };
  expect(describeSensitivity(none)).toMatch(/^the verdict is the same/);
  expect(describeSensitivity({ ...none, failed: flips })).toMatch(/cannot be measured with `host.copy`/);
  expect(shortSensitivity(none)).toBe('unchanged (25)');
  expect(shortSensitivity({ ...none, numbers: 1 })).toBe('unchanged (1)');
  expect(describeSensitivity({ ...none, numbers: 1 })).toMatch(/^the verdict is the same with the one number/);
  const all = Array.from({ length: 9 }, (_, k) => ({ ...flips[0], number: `host.${k}` }));
  expect(describeSensitivity({ ...none, flips: all })).toMatch(/^it holds with 9 of 50 changes/);
  expect(shortSensitivity({ ...none, flips: [...flips, { ...flips[0], factor: 1.3 }] })).toBe(
    'changes with `host.copy`',
  );
  const nine = Array.from({ length: 9 }, (_, k) => ({ ...flips[0], number: `host.${k}` }));
  expect(shortSensitivity({ ...none, flips: [...nine, { ...nine[0], factor: 1.3 }] })).toBe('changes with 9 of 25');
  expect(shortSensitivity(undefined)).toBe('not tried');
});

it('is forgotten where the figure is another one by now', () => {
  const outcome = {
    chart: { kind: 'lines', x: { name: 'x', places: [1, 2] }, y: { name: 'y' } },
    measured: '1',
    holds: true,
  } as const;
  const drawn = (values: readonly number[]) => ({
    ...outcome,
    chart: { ...outcome.chart, series: [{ name: 'a', values }] },
  });
  const known = { numbers: 3, holds: true, of: '7f3b506a685eda1c', flips: [], failed: [] };
  expect(sensitivityOf({ 'D0.0': known }, 'D0.0', drawn([1, 2]))).toBe(known);
  // Times end in other digits where programs begin at another time.
  expect(sensitivityOf({ 'D0.0': known }, 'D0.0', drawn([1, 2 + 2e-14]))).toBe(known);
  expect(sensitivityOf({ 'D0.0': known }, 'D0.0', { ...drawn([1, 2]), holds: false })).toBeUndefined();
  expect(sensitivityOf({ 'D0.0': known }, 'D0.0', drawn([1, 3]))).toBeUndefined();
  expect(sensitivityOf({}, 'D0.0', drawn([1, 2]))).toBeUndefined();
  expect(sensitivityOf({ 'D0.0': { ...known, numbers: 0 } }, 'D0.0', drawn([1, 2]))).toBeUndefined();
});

describe('a run', () => {
  const folder = temporaryFolder('sensitivity');

  const program = fileURLToPath(new URL('../../build/programs/bench/figures/main.js', import.meta.url));
  const run = (...more: readonly string[]) =>
    spawnSync(process.execPath, [program, '--sensitivity', '--only', 'D5.2', '--docs', join(folder, 'docs'), ...more], {
      encoding: 'utf8',
    });
  const steps = (): string => join(folder, 'build/sensitivity.jsonl');
  const found = (): unknown => JSON.parse(readFileSync(join(folder, 'docs/sensitivity.json'), 'utf8'));

  it('measures with each number that the figure reads, and goes on where it was stopped, on the same code', () => {
    expect(run().stdout).toMatch(/D5\.2: .*with each of \d+ numbers/);
    const lines = readFileSync(steps(), 'utf8').trim().split('\n');
    const [, first] = lines.map((line) => JSON.parse(line) as { read: string[] });
    const read = ['connectx-16-cores', 'infinihost-64'].flatMap((fabric) =>
      unsourced(fabric)
        .map((number) => `${fabric} ${number}`)
        .filter((number) => first.read.includes(number)),
    );
    expect(read).toContain('connectx-16-cores host.post');
    for (const unread of ['connectx-16-cores host.interrupt', 'infinihost-64 host.post'])
      expect(read).not.toContain(unread);
    // The code, the first run, and each number both ways.
    expect(lines).toHaveLength(2 + 2 * read.length);
    const whole = found();
    expect(whole).toMatchObject({ 'D5.2': { numbers: read.length, holds: true, failed: [] } });

    writeFileSync(steps(), `${lines.slice(0, 9).join('\n')}\n`);
    rmSync(join(folder, 'docs/sensitivity.json'));
    expect(run('--resume').stdout).toMatch(/D5\.2/);
    expect(found()).toEqual(whole);
    expect(readFileSync(steps(), 'utf8').split('\n').slice(0, 9)).toEqual(lines.slice(0, 9));

    writeFileSync(steps(), `{"code":"other"}\n${lines.slice(1).join('\n')}\n`);
    const refused = run('--resume');
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toMatch(/of other code/);
  }, 600_000);
});
