/** Folders of searches that were killed. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeLogFolder } from '../../src/races/logs/log-folder.ts';

const before = process.env['TMPDIR'];
const own = mkdtempSync(join(tmpdir(), 'onesided-test-log-folder-'));
afterAll(() => {
  if (before === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = before;
  rmSync(own, { recursive: true, force: true });
});

test('the next search removes those whose process is no more, and nothing else', () => {
  process.env['TMPDIR'] = own;
  const first = makeLogFolder();
  expect(dirname(first)).toBe(own);
  const { pid: gone } = spawnSync(process.execPath, ['--version']);
  const prefix = basename(first).slice(0, -`-${process.pid}-abcdef`.length);
  const abandoned = join(own, `${prefix}-${gone}-abcdef`);
  mkdirSync(abandoned);
  writeFileSync(join(abandoned, 'rank-0.races'), 'something');
  const others = [`${prefix}-${process.ppid}-abcdef`, `onesided-races-elsewhere-1-${gone}-abcdef`, 'onesided-races-x'];
  for (const name of others) mkdirSync(join(own, name));
  const second = makeLogFolder();
  expect(readdirSync(own).sort()).toEqual([basename(first), basename(second), ...others].sort());
});
