import { expect, test } from 'vitest';
import { alone, tasks } from './framework.mjs';

test('a window of one rank', async () => {
  expect(await alone()).toBe(42);
});

test('ranks as tasks', async () => {
  expect(await tasks()).toBe(7);
});
