/** What programs say of their options: what stands at their beginning. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../bench/programs.ts';

function help(...args: string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  return spawnSync(process.execPath, [...args, '--help'], { cwd: ROOT, encoding: 'utf8' });
}

describe('--help', () => {
  it.each([
    ['start', ['bench/start.mjs'], '--words 2^24'],
    ['bench', ['bench/run.mjs'], '--filter ID'],
    ['bench:rdma', ['bench/device.mjs'], '--instructions'],
    ['bench:simulator', ['build/programs/bench/simulator/main.js'], '--rounds 3'],
    ['figures', ['build/programs/bench/figures/main.js'], '--sensitivity'],
    ['explore', ['build/programs/test/ranks/explore.js'], '--seeds=1000'],
    ['test:nodes', ['scripts/test-nodes.mjs'], '--figures'],
    ['test:rdma', ['scripts/test-rdma.mjs'], '--only WORD'],
    ['test:soak', ['scripts/soak.mjs'], '--minutes 30'],
    ['program', ['bench/program.mjs'], 'random-access|summa'],
    ['lu', ['bench/program.mjs', 'lu'], '--lock-migration POLICY'],
    ['program -- halo', ['bench/program.mjs', 'halo'], '--neighbours 4|8'],
  ])('of npm run %s', (name, args, option) => {
    const { status, stdout, stderr } = help(...args);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain(option);
    expect(stdout).not.toMatch(/^ ?\*/m);
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
    expect(Object.keys(scripts)).toContain(name.split(' ')[0]);
  });
});
