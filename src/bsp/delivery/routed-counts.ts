/**
 * The counts of many processes that need to know what comes from whom. Each count is a record of target and source,
 * which is handed on from process to process: in round k, those go on by 2^k processes whose way to their target has
 * that bit (the routing of Bruck and others' index operation, 1997). After ⌈log2 p⌉ rounds all are where they belong.
 *
 * A process sends one message and receives one in each round, whatever it has to say. So it is a barrier by
 * dissemination, too: whoever has completed it knows that all have begun. What is a maximum, or true of any process,
 * goes with the messages; each process has taken account of all others when it is complete, of some of them twice. Sums
 * do not allow for that, and are not sent: they have an allreduce, where anybody needs them.
 *
 * Messages have a record for each pair of processes with data, not one for each pair: with few partners each, they are
 * short for any number of processes. In a total exchange a message has p/2 records of 20 bytes.
 */
import { allreduce, type Step } from '../../collective/collectives.ts';
import { bytesOf } from '../../datatype/base-types.ts';
import { Op } from '../../datatype/op.ts';
import type { Channel } from '../../message/message-channel.ts';
import { type Counts, type Exchange, gatherNumbers, receiveWords } from './counts.ts';
import { type Load, SUMS, totalsIn, wordsOf } from './totals.ts';

/** Words of a message in front of the records: whether some process speaks; the two totals that are maxima. */
const HEAD = 3;
/** Words of a record: target, source, chunks of puts, chunks of gets, packets. */
const EACH = 5;

/** @param hasSums whether the totals that are sums are wanted; they are this process's own otherwise */
export function routedCounts(hasSums: boolean): Exchange {
  return (channel, puts, gets, numbers, load) => exchange(channel, puts, gets, numbers, load!, hasSums);
}

function* exchange(
  channel: Channel,
  puts: Int32Array,
  gets: Int32Array,
  numbers: Float64Array,
  load: Load,
  hasSums: boolean,
): Step<Counts> {
  const { rank, size } = channel;
  const to = load.to!;
  const totals = wordsOf(load);
  const heads = [numbers.length > 0 ? 1 : 0, ...totals.slice(SUMS)];
  let records: number[] = [];
  for (let pid = 0; pid < size; pid++) {
    if (puts[pid] + gets[pid] + to[pid] > 0) records.push(pid, rank, puts[pid], gets[pid], to[pid]);
  }
  for (let distance = 1; distance < size; distance *= 2) {
    const [stay, leave]: [number[], number[]] = [[], [...heads]];
    for (let at = 0; at < records.length; at += EACH) {
      const far = (records[at] - rank + size) % size;
      const line = (far & distance) === 0 ? stay : leave;
      for (let k = 0; k < EACH; k++) line.push(records[at + k]);
    }
    channel.send((rank + distance) % size, bytesOf(Int32Array.from(leave)));
    const came = yield* receiveWords(channel, (rank - distance + size) % size);
    for (let i = 0; i < HEAD; i++) heads[i] = Math.max(heads[i], came[i]);
    for (let at = HEAD; at < came.length; at++) stay.push(came[at]);
    records = stay;
  }
  const sums = Int32Array.from(totals.slice(0, SUMS));
  if (hasSums) yield* allreduce(channel, sums, Op.SUM.code);
  const all = heads[0] > 0 ? yield* gatherNumbers(channel, numbers) : undefined;
  return countsOf(records, size, all, totalsIn([...sums, ...heads.slice(1)]));
}

/** What the records say that have come to their target. */
function countsOf(
  records: readonly number[],
  size: number,
  numbers: Counts['numbers'],
  totals: Counts['totals'],
): Counts {
  const from = new Int32Array(size);
  let [puts, gets] = [0, 0];
  for (let at = 0; at < records.length; at += EACH) {
    puts += records[at + 2];
    gets += records[at + 3];
    from[records[at + 1]] = records[at + 4];
  }
  return { puts, gets, numbers, totals, from };
}
