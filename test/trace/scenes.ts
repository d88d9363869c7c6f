/**
 * A trace that is always the same, of three ranks in virtual time: a fence, locks, and a round of start, complete,
 * post, wait. For pictures.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeTrace } from '../../src/trace/chrome-trace.ts';
import { recordInMemory } from '../../src/trace/recorder.ts';
import { readTrace, type Trace } from '../../src/trace/trace-reader.ts';

const SIZE = 3;
const EVENTS = 4096;

/** Nanoseconds of a run in which each rank does one thing after the other, and waits for what others have done. */
class Run {
  now = 0;
  readonly #all = Array.from({ length: SIZE }, (_, rank) => recordInMemory(rank, () => this.now, EVENTS));
  readonly ranks = this.#all.map(({ recorder }) => recorder);
  readonly scopes = this.ranks.map((rank) => rank.text('4.1|grid <3 × 3>'));

  at(time: number): this {
    this.now = time;
    return this;
  }

  span(
    rank: number,
    kind: 'epoch' | 'call' | 'wait',
    name: string,
    start: number,
    end: number,
    peer = -1,
    place = 0,
  ): void {
    const recorder = this.ranks[rank];
    const span = recorder.begin(kind, name, {
      scope: kind === 'wait' ? 0 : this.scopes[rank],
      peer,
      place,
      since: start,
    });
    if (end < Number.POSITIVE_INFINITY) {
      this.now = end;
      recorder.end(span);
    }
  }

  operation(rank: number, name: string, peer: number, start: number, end: number, disp: number): void {
    const recorder = this.ranks[rank];
    this.now = end;
    recorder.operation(recorder.text(name), this.scopes[rank], peer, 64, disp, start, true);
  }

  write(file: string): void {
    const recordings = this.#all.map(({ recording }) => recording());
    writeTrace(file, recordings, { title: 'grid.js & others', clock: 'virtual' });
  }
}

/** Writes the trace. */
export function writeExample(file: string): void {
  const run = new Run();
  const barrier = run.ranks.map((rank) => rank.flow('barrier', '4.1', SIZE));
  for (let rank = 0; rank < SIZE; rank++) {
    const late = 3000 * rank;
    run.span(rank, 'call', 'fence', 0, 500, -1, 1);
    run.span(rank, 'epoch', 'fence epoch', 500, 30_000, -1, 1);
    run.operation(rank, 'put', (rank + 1) % SIZE, 1000 + late, 1200 + late, 4);
    run.operation(rank, 'get', (rank + 2) % SIZE, 1200 + late, 1700 + late, 0);
    for (let i = 0; i < 5; i++) run.operation(rank, 'accumulate', 0, 2000 + 40 * i + late, 2030 + 40 * i + late, i);
    run.span(rank, 'call', 'fence', 3000 + late, 30_000, -1, 2);
    run.span(rank, 'wait', `fence of window grid (waiting for rank ${(rank + 2) % SIZE})`, 3200 + late, 29_900);
    for (const distance of [1, 2]) {
      run.at(3100 + late + 10_000 * (distance - 1));
      barrier[rank].sent((rank + distance) % SIZE, 0);
    }
  }
  for (const [i, distance] of [1, 2].entries()) {
    for (let rank = 0; rank < SIZE; rank++) {
      run.at(12_000 + 11_000 * i + rank);
      barrier[rank].seen((rank - distance + SIZE) % SIZE, 0);
    }
  }
  // Rank 1 waits for the lock that rank 0 has; rank 2 never gets it.
  for (const [rank, from] of [0, 1].entries()) {
    const begin = 40_000 + 5000 * from;
    run.span(rank, 'call', 'lock', rank === 0 ? begin : 40_200, begin + 100, 2, 1);
    if (rank === 1) run.span(rank, 'wait', 'lock of rank 2 (rank 0 holds it exclusively)', 40_300, begin + 90);
    run.at(begin + 80).ranks[rank].acquired(run.scopes[rank], 2, true, rank === 1);
    run.span(rank, 'epoch', 'exclusive lock', begin + 100, begin + 4500, 2, 1);
    run.operation(rank, 'put', 2, begin + 1000, begin + 1100, 8);
    run.span(rank, 'call', 'unlock', begin + 4000, begin + 4500, 2);
    run.at(begin + 4300).ranks[rank].released(run.scopes[rank], 2, true);
  }
  run.span(2, 'call', 'lock', 41_000, Number.POSITIVE_INFINITY, 2, 1);
  // Rank 0 puts to rank 1, which has posted.
  const posts = run.ranks.map((rank) => rank.flow('post', '4.1', SIZE));
  run.span(1, 'call', 'post', 60_000, 60_100);
  run.at(60_050);
  posts[1].sent(0, 0);
  run.span(1, 'epoch', 'exposure epoch', 60_100, 69_000, -1, 1);
  run.span(0, 'call', 'start', 59_000, 61_000);
  run.at(60_900);
  posts[0].seen(1, 0);
  run.span(0, 'epoch', 'access epoch', 61_000, 65_000, -1, 1);
  run.operation(0, 'put', 1, 62_000, 62_500, 3);
  run.span(0, 'call', 'complete', 64_000, 65_000);
  run.span(1, 'call', 'wait', 61_000, 69_000);
  run.write(file);
}

/** Writes a run that hangs: all come to the first fence, rank 1 not to the second one, since it waits for a lock. */
export function writeHang(file: string): void {
  const run = new Run();
  for (let rank = 0; rank < SIZE; rank++) {
    run.span(rank, 'call', 'fence', 0, 500, -1, 1);
    run.span(rank, 'epoch', 'fence epoch', 500, 5000 + rank, -1, 1);
  }
  run.span(1, 'call', 'lock', 6000, Number.POSITIVE_INFINITY, 2, 1);
  for (const rank of [0, 2]) run.span(rank, 'call', 'fence', 4000 + rank, Number.POSITIVE_INFINITY, -1, 2);
  // What is unfinished lasts until the last thing that was recorded.
  run.at(9000).ranks[0].notified(run.scopes[0], 2);
  run.write(file);
}

export function example(write: (file: string) => void = writeExample): Trace {
  const folder = mkdtempSync(join(tmpdir(), 'onesided-scene-'));
  try {
    const file = join(folder, 'trace.json');
    write(file);
    return readTrace(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
