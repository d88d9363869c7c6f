/**
 * The worker thread of a rank whose job is on several hosts, without a launcher of ours: it keeps the rank's copy of
 * the control memory like the others' (control-links.ts). So the rank itself reads and writes words, as on one host,
 * and computes or blocks as it likes.
 *
 * The end: a member says its last words and waits until the hub has closed its side, so it knows that they came. The
 * hub says its last words, and then goes on until all have left (10 s at most), even if its rank left long before: so
 * the remaining members still learn what one of them says or suffers.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { viewControl } from '../job/control-region.ts';
import { ControlLinks } from './control-links.ts';

/** What the rank gives its worker. */
export interface ControlWorkerData {
  readonly buffer: SharedArrayBuffer;
  /** Word 0 becomes 1 when everything was sent after `leave`. */
  readonly flag: SharedArrayBuffer;
  readonly rank: number;
  readonly size: number;
  readonly secret: string;
  /** A rank that says nothing for so long has failed. */
  readonly silenceMs: number;
}

/**
 * What the worker is told. A member's worker is told where the hub is. The hub's worker is told that all others know
 * where it is, so that a rank that has not come after `EXPECT_MS` never will. At the end, each is told to leave.
 */
export type Order =
  | { readonly hub: { readonly hosts: readonly string[]; readonly port: number } }
  | 'expect all'
  | 'leave';

/**
 * What it tells. The hub's worker tells the port at which it listens; a member's, that it is connected, or why it
 * cannot be.
 */
export interface News {
  readonly port?: number;
  readonly joined?: true;
  readonly failure?: string;
}

/** How long a member tries to reach the hub; the hub waits longer. */
const JOIN_MS = 20_000;
const EXPECT_MS = 60_000;

const { buffer, flag, rank, size, secret, silenceMs } = workerData as ControlWorkerData;
const links = new ControlLinks({ control: viewControl(buffer, size, { rank }), leader: rank, secret, silenceMs });

function tell(news: News): void {
  parentPort!.postMessage(news);
}

async function join({ hosts, port }: { readonly hosts: readonly string[]; readonly port: number }): Promise<void> {
  const failure = await links.join(hosts, port, JOIN_MS);
  tell(failure === undefined ? { joined: true } : { failure });
}

async function leave(): Promise<never> {
  await links.leave(() => {
    const word = new Int32Array(flag);
    Atomics.store(word, 0, 1);
    Atomics.notify(word, 0);
  });
  process.exit();
}

parentPort!.on('message', (order: Order) => {
  if (order === 'leave') void leave();
  else if (order === 'expect all') setTimeout(() => links.copy.expectAll(), EXPECT_MS);
  else void join(order.hub);
});
if (rank === 0) {
  links.listen().then(
    (port) => tell({ port }),
    (error: Error) => tell({ failure: error.message }),
  );
}
