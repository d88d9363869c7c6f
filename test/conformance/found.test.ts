/**
 * Schedules that have once failed, as `npm run explore` has found them. What each draws depends on the requirement's
 * program: after a change of it they are schedules like others.
 */
import { expect, test } from 'vitest';
import { CHAPTERS } from '../ranks/support/exploration.ts';
import { tryUnder } from '../ranks/support/explorer.ts';

/** Behind a transfer that waits for another one's registration, or another lane's receives, nobody looked again. */
const LOST_LOOK = 'a rank slept though it could go on';
/** A message that waited for writes to be placed let one pass that came behind it. */
const OVERTAKEN = 'messages of one queue pair overtook each other';

const FOUND = [
  ['layouts', 'sgrs:', 51064, 6, 'connectx-16-cores/2', LOST_LOOK],
  ['layouts', 'sgrs:', 51304, 6, 'connectx-16-cores/2', LOST_LOOK],
  ['layouts', 'host-assisted:', 50499, 5, 'infinihost-64', LOST_LOOK],
  ['layouts', 'host-assisted:', 51297, 5, 'infinihost-64', LOST_LOOK],
  ['layouts', 'pack:', 50579, 7, 'infinihost-64', OVERTAKEN],
  ['layouts', 'multi-write:', 235, 3, 'connectx-16-cores/2', LOST_LOOK],
  ['layouts', 'host-assisted:', 235, 3, 'connectx-16-cores/2', LOST_LOOK],
] as const;

test.each(FOUND)('%s, %s seed %i on %i ranks of %s (%s)', async (chapter, says, seed, size, fabric) => {
  const requirement = CHAPTERS[chapter].find((one) => one.says.startsWith(says))!;
  expect(await tryUnder(requirement, { fabric, size, seed })).toBeUndefined();
});
