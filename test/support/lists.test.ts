import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { existing } from '../gate/files.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test.each([
  'test/support/no-such.test.ts',
  'test/support/{lists,no-such}.test.ts',
  'test/support/!(lists|no-such).test.ts',
  'test/no-such/*.test.ts',
])('%s names a file that is not there, and is refused', (pattern) => {
  expect(() => existing(root, ['test/support/lists.test.ts', pattern])).toThrow(/no-such.*, which is not there$/);
});

test('names that are there are left as they are', () => {
  const patterns = [
    'test/support/*.test.ts',
    'test/support/{lists,selections}.test.ts',
    'test/support/!(lists).test.ts',
  ];
  expect(existing(root, patterns)).toEqual(patterns);
});
