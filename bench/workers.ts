/** Work on all cores: turns for worker threads, each of which answers one before it gets the next. */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';

/**
 * @param program what each worker runs: it answers each message by one
 * @param options.data the `workerData` of each
 * @param turns are sent as they come; no more workers than `options.most` are started
 * @param answered is told of each answer, in the order in which they come, and of the number of its turn, from 0
 * @throws what a worker threw
 */
export async function onWorkers<Turn, Answer>(
  program: URL,
  turns: Iterable<Turn>,
  answered: (answer: Answer, turn: number) => void,
  options: { readonly data?: unknown; readonly most?: number } = {},
): Promise<void> {
  const left = turns[Symbol.iterator]();
  let next = 0;
  const work = async (): Promise<void> => {
    const worker = new Worker(program, { workerData: options.data });
    try {
      for (let turn = left.next(); turn.done !== true; turn = left.next()) {
        const number = next++;
        worker.postMessage(turn.value);
        // What goes wrong there rejects this.
        const [answer] = (await once(worker, 'message')) as [Answer];
        answered(answer, number);
      }
    } finally {
      await worker.terminate();
    }
  };
  const workers = Math.min(availableParallelism(), options.most ?? Number.POSITIVE_INFINITY);
  await Promise.all(Array.from({ length: workers }, work));
}
