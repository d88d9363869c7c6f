import assert from 'node:assert';
import test from 'node:test';
import { alone, tasks } from './framework.mjs';

test('a window of one rank', async () => {
  assert.equal(await alone(), 42);
});

test('ranks as tasks', async () => {
  assert.equal(await tasks(), 7);
});
