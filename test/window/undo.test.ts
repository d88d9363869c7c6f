/** What a window gives back when it is freed, or cannot be made. */
import { expect, test } from 'vitest';
import { Undo } from '../../src/window/creation/undo.ts';

test('all steps are taken, the last one first, whichever fails; the first failure is told', () => {
  const undo = new Undo();
  const taken: number[] = [];
  for (const step of [1, 2, 3, 4]) {
    undo.add(() => {
      taken.push(step);
      if (step % 2 === 1) throw new Error(`step ${step}`);
    });
  }
  expect(() => undo.run()).toThrow('step 3');
  expect(taken).toEqual([4, 3, 2, 1]);
  undo.run();
  expect(taken).toHaveLength(4);
});
