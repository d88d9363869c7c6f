/**
 * Which cases of which programs run on a device, and on how many ranks. They are listed where there is none, too
 * (test/support/selections.test.ts): a guest takes minutes to tell that a word is wrong.
 */
import { SCHEDULES } from '../ranks/support/kinds.ts';
import type { Selection } from '../ranks/support/selections.ts';

const BY_REQUESTS = 'window-by-requests';
const ALONE = ['gets-first', 'interleave', 'aggregate', 'aggregate-gets'] as const;

export const ON_A_DEVICE: readonly { program: string; cases: Selection; size: number }[] = [
  { program: BY_REQUESTS, cases: { but: { about: ['attaching'] } }, size: 3 },
  { program: BY_REQUESTS, cases: { about: ['attaching', 'refusals'] }, size: 2 },
  { program: 'window-dynamic', cases: { about: ['every call', 'again', 'linked list', 'refusals'] }, size: 3 },
  { program: 'window-dynamic', cases: { about: ['changes'] }, size: 2 },
  { program: 'window-progress', cases: { about: ['ordinary', 'asking'] }, size: 2 },
  {
    program: 'sync-contention',
    cases: { about: ['exclusive', 'giving up'], but: { fence: ['immediate'] } },
    size: 3,
  },
  { program: 'window-pscw', cases: { fence: ['remote-notify'], but: { schedule: SCHEDULES.slice(1) } }, size: 3 },
  { program: 'window-pscw', cases: { about: ['everybody', 'gets'], schedule: ALONE }, size: 3 },
  { program: 'window-requests', cases: { about: ['requests', 'notifications of some'], schedule: ALONE }, size: 2 },
  {
    program: 'window-transfer',
    cases: {
      about: ['put and get', 'accumulate', 'compareAndSwap'],
      flavor: ['allocate'],
      fence: ['remote-notify'],
    },
    size: 2,
  },
];

/** More bytes than a message carries. */
export const LARGE = { program: BY_REQUESTS, cases: { about: ['large'] } } as const;

/** On two hosts: what some ranks do by loads and stores and others by requests. */
export const ON_TWO_HOSTS = { program: BY_REQUESTS, cases: { about: ['neighbours'] } } as const;
