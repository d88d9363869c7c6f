/**
 * A rank of `onesided run --hosts` and the agent that has started it, over a connection that the rank has inherited:
 * the rank sends its card, a line, and gets a line with all cards when all have come, or why they will not.
 */
import { Socket } from 'node:net';
import { RankFailedError, RmaError } from '../../errors.ts';
import { type Patience, type ProcessManager, readNumber, removeVariables } from './manager.ts';

/** The variable with the connection's descriptor. */
export const CARDS_VARIABLE = 'ONESIDED_CARDS_FD';

/** The agent's line. */
export type CardsReply =
  | { readonly cards: readonly string[] }
  /** @param rank the one that has ended */
  | { readonly refused: string; readonly rank: number };

/** The agent that has started this process, if one has. */
export function findPipe(): ProcessManager | undefined {
  if (process.env[CARDS_VARIABLE] === undefined) return undefined;
  const fd = readNumber(CARDS_VARIABLE);
  const rank = readNumber('ONESIDED_RANK');
  const size = readNumber('ONESIDED_SIZE');
  return {
    rank,
    size,
    name: 'onesided run --hosts',
    exchange: (card, patience) => exchange(fd, card, size, patience),
    forget: () => removeVariables(CARDS_VARIABLE),
  };
}

async function exchange(fd: number, card: string, size: number, { signal }: Patience): Promise<string[]> {
  const socket = open(fd);
  try {
    const reply = await new Promise<CardsReply>((resolve, reject) => {
      const gone = (cause?: Error): void =>
        reject(new RmaError('ERR_COMM', 'init: the launcher ended before all ranks had joined', { cause }));
      const onAbort = (): void => reject(signal.reason as Error);
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      let text = '';
      socket.setEncoding('latin1').on('data', (piece: string) => {
        text += piece;
        if (text.endsWith('\n')) resolve(JSON.parse(text) as CardsReply);
      });
      socket.on('error', gone).on('end', () => gone());
      socket.on('close', () => signal.removeEventListener('abort', onAbort));
      socket.write(`${card}\n`, 'latin1');
    });
    if ('refused' in reply) throw new RankFailedError(reply.rank, `init: ${reply.refused}`);
    if (reply.cards.length === size) return [...reply.cards];
    throw new RmaError('ERR_COMM', `init: ONESIDED_SIZE is ${size}, but the job has ${reply.cards.length} ranks`);
  } finally {
    socket.destroy();
  }
}

function open(fd: number): Socket {
  try {
    return new Socket({ fd, readable: true, writable: true });
  } catch (cause) {
    throw new RmaError(
      'ERR_COMM',
      `init: descriptor ${fd} is not, or is no longer, a connection to "onesided run"; only one thread of a rank ` +
        'can call init()',
      { cause },
    );
  }
}
