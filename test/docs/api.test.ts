/** The API reference, `npm run docs`: every name that it needs is in it, and no link leads nowhere. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('the API reference can be written without a warning', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const typedoc = join(root, 'node_modules/typedoc/bin/typedoc');
  const { status, stdout, stderr } = spawnSync(process.execPath, [typedoc, '--emit', 'none'], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  expect(`${stdout}${stderr}`).not.toContain('[warning]');
  expect(status).toBe(0);
});
