/** Rows of chapters 8 and 9 on real ranks (real.ts). */
import { forEach } from './figure.ts';
import { HANDLES, type Handle, PROTOCOLS, type Protocol } from './handles.ts';
import {
  BY_REQUESTS,
  type By,
  by,
  NOTHING_UNDER_WAY,
  OPERATIONS,
  onRanks,
  type RealRow,
  type Result,
  SAMPLES,
  show,
  told,
} from './on-ranks.ts';

const PUTS = 8;
/** Pieces of a put at its origin. */
const PIECES = [4, 50, 100, 256];

export const ROWS_8_9: Readonly<Record<string, () => Promise<RealRow>>> = {
  'D8.2': async () => {
    const found = await forEach([false, true], (other) =>
      forEach(PIECES, async (pieces) => {
        const [origin, target] = await onRanks(2, 'listed', { pieces, other, puts: PUTS }, BY_REQUESTS);
        const { sends, layoutsSaid, layoutsNamed, packed } = origin.after;
        const connections = [origin.after.connections, target.after.connections];
        return {
          ...{ sends, receives: target.after.receives },
          holds:
            origin.right &&
            target.right &&
            sends > 0 &&
            sends === target.after.receives &&
            packed === 0 &&
            layoutsSaid === 1 &&
            layoutsNamed >= PUTS - 1 &&
            origin.before.connections === 0 &&
            connections.every((count) => count === 1),
        };
      }),
    );
    const counts = found.map((cuts) => cuts.map(({ sends, receives }) => `${sends / PUTS} and ${receives / PUTS}`));
    return {
      measured:
        `2 processes, by requests, ${PUTS} puts of ${PIECES.join(', ')} pieces: sends and receives a put ` +
        `${counts[0].join(', ')}; cut elsewhere at the target ${counts[1].join(', ')}`,
      expected:
        'as many receives as sends; nothing packed; a layout is sent once, and then its number; ' +
        'no second connection before the first put, one at each end afterwards; all bytes right',
      holds: found.flat().every(({ holds }) => holds),
    };
  },
  'D9.1': async () => {
    const held = await forEach([64, 4], async (limit) => {
      const found = await onRanks(2, 'heldBack', { operations: 10, limit, after: 50_000 }, BY_REQUESTS);
      return found[1];
    });
    const right = await forEach(OPERATIONS, (operation) => handles(operation, 8, BY_REQUESTS));
    const all = right.every((found) => Object.values(found).every((one) => one.right));
    return {
      measured:
        '2 processes, by requests: of 10 puts with a limit of 64 and 4, ' +
        `${held.map(({ before }) => before).join(' and ')} are there before the wait, ` +
        `${held.map(({ after }) => after).join(' and ')} after it; 64 operations of 8 bytes, µs: ` +
        `${OPERATIONS.map((operation, i) => `${operation} ${told(right[i], ({ took }) => show(took))}`).join('; ')}` +
        `; ${all ? 'all data are right' : 'some data are wrong'}`,
      expected:
        'before the wait none, and at least the 8 of full lists (the others may leave when this rank looks for ' +
        'completions); after it all; all data right',
      holds: all && held[0].before === 0 && held[1].before >= 8 && held.every(({ after }) => after === 10),
    };
  },
  'D9.2': async () => {
    const sizes = [8, 4096];
    const ways = [{}, BY_REQUESTS];
    const found = await forEach(ways, (env) => forEach(sizes, (bytes) => handles('get', bytes, env)));
    const added = found.flat().map(({ implicit, explicit, aggregate }) => {
      const slower = Math.max(explicit.took, aggregate.took);
      return 100 * (slower / implicit.took - 1);
    });
    return {
      measured:
        `2 processes, 64 gets of ${sizes.join(' and ')} bytes, µs: in shared memory ` +
        `${found[0].map((one) => told(one, ({ took }) => show(took))).join('; ')}; ` +
        `by requests ${found[1].map((one) => told(one, ({ took }) => show(took))).join('; ')}; ` +
        `the slower handle adds ${added.map((value) => value.toFixed(0)).join(', ')} %`,
      expected: 'no handle adds more than 5 %',
      holds: added.every((value) => value <= 5),
      why:
        'here a call carries its get out in some nanoseconds, so that one more call or object is a large part of ' +
        'them; there is no adapter with a doorbell or a completion to save',
    };
  },
  'D9.3': async () => {
    const sizes = [4096, 65_536];
    const found = await by(PROTOCOLS, (protocol: Protocol) =>
      forEach(sizes, async (bytes) => (await onRanks(2, 'hiding', { protocol, bytes, samples: 200 }, BY_REQUESTS))[0]),
    );
    const whole = (values: readonly number[]): string => values.map((value) => value.toFixed(0)).join(', ');
    return {
      measured: `2 processes, by requests, a get of ${sizes.join(' and ')} bytes, overlap in %: ${told(found, whole)}`,
      expected:
        'at the larger size direct above 99 %, buffered less, messages at most two thirds of what they have below',
      holds:
        found.direct[1] > 99 && found.buffered[1] < found.direct[1] && found.messages[1] <= (2 / 3) * found.messages[0],
      why: NOTHING_UNDER_WAY,
    };
  },
};

/** 64 operations, waited for by each kind of handle. */
function handles(
  operation: 'put' | 'get',
  bytes: number,
  env: Record<string, string>,
): Promise<By<Handle, Result<'handled'>>> {
  return by(HANDLES, async (handle) => {
    const options = { handle, operation, bytes, operations: 64, samples: SAMPLES, compute: 0 };
    const found = await onRanks(2, 'handled', options, env);
    return { ...found[0], right: found.every(({ right }) => right) };
  });
}
