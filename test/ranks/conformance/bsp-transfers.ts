/** What BSPlib requires of puts, gets and messages, in our own words (Hill and others 1998). */
import assert from 'node:assert/strict';
import { begin } from 'onesided/bsp';
import { bspRandom } from '../support/bsp-random.ts';
import { allLearn, datagramsOf, inComputation, refuses, variable, waysOf } from './bsp-trial.ts';
import { collector, type Requirement } from './requirement.ts';

const { requirement, lossy, requirements } = collector();
export const bspTransfers: readonly Requirement[] = requirements;

const one = (value: number): Float64Array => Float64Array.of(value);

requirement(
  'put',
  'bsp_put has copied the source when it returns, so that it may be changed at once',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1);
    const source = one(b.pid + 1);
    b.bsp.put(b.right, source, x);
    source[0] = Number.NaN;
    await b.sync();
    assert.equal(x[0], b.left + 1);
  }),
);
requirement(
  'put',
  'the source may be any memory, registered or not, even the registered variable itself',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 4, b.pid);
    b.bsp.put(b.right, x, x, 2, 2);
    await b.sync();
    assert.deepEqual([...x], [b.pid, b.pid, b.left, b.left]);
  }),
);
requirement(
  'put',
  'a put changes only the bytes at the given offset',
  '',
  inComputation(async (b) => {
    const x = new Uint8Array(64).fill(1);
    b.bsp.pushReg(x);
    await b.sync();
    for (const [at, count] of [
      [3, 1],
      [7, 5],
      [20, 3],
      [33, 17],
    ])
      b.bsp.put(b.right, new Uint8Array(count).fill(at), x, at);
    await b.sync();
    const expected = new Uint8Array(64).fill(1);
    for (const [at, count] of [
      [3, 1],
      [7, 5],
      [20, 3],
      [33, 17],
    ])
      expected.fill(at, at, at + count);
    assert.deepEqual(x, expected);
  }),
);
requirement(
  'put',
  'a process may put to itself',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1);
    b.bsp.put(b.pid, one(4), x);
    await b.sync();
    assert.equal(x[0], 4);
  }),
);
requirement(
  'put',
  'an empty put does nothing, even at the end of the variable',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 2, 6);
    b.bsp.put(b.right, new Float64Array(0), x, 2);
    b.bsp.put(b.right, one(1), x, 0, 0);
    await b.sync();
    assert.deepEqual([...x], [6, 6]);
  }),
);
requirement(
  'put',
  'if several processes put to one place, the result is the whole put of one of them',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1, -1);
    b.bsp.put(0, one(1 / (b.pid + 3)), x);
    await b.sync();
    if (b.pid === 0) assert.ok(Array.from({ length: b.nprocs }, (_, pid) => 1 / (pid + 3)).includes(x[0]));
  }),
);
requirement(
  'put',
  'a put may have any size, and a superstep any number of puts',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 20_000);
    b.bsp.put(
      b.right,
      Float64Array.from(x, (_, i) => i + b.pid),
      x,
    );
    await b.sync();
    assert.ok(x.every((value, i) => value === i + b.left));
    for (let i = 0; i < 6000; i++) b.bsp.put(b.right, one(-i), x, 3 * i);
    await b.sync();
    assert.ok(x.every((value, i) => value === (i % 3 === 0 && i < 18_000 ? -i / 3 : i + b.left)));
  }),
);
requirement(
  'put',
  "a put past the end of the other process's variable is refused, and writes nothing",
  '',
  inComputation(async (b) => {
    const x = await variable(b, 4);
    refuses('ERR_RMA_RANGE', () => b.bsp.put(b.right, new Float64Array(2).fill(1), x, 3));
    refuses('ERR_RANK', () => b.bsp.put(b.nprocs, one(1), x));
    await b.sync();
    assert.deepEqual([...x], [0, 0, 0, 0]);
  }),
);

requirement(
  'get',
  'bsp_get returns the value at the end of the superstep, including what its owner has stored until then',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1, 1);
    const got = one(0);
    b.bsp.get(b.right, x, 0, got);
    x[0] = 10 + b.pid;
    await b.sync();
    assert.equal(got[0], 10 + b.right);
  }),
);
requirement(
  'get',
  'gets do not see the puts of their superstep: those are written afterwards',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1, b.pid);
    const got = one(-1);
    b.bsp.put(b.right, one(100), x);
    b.bsp.get(b.right, x, 0, got);
    await b.sync();
    assert.deepEqual([got[0], x[0]], [b.right, 100]);
  }),
);
requirement(
  'get',
  'the destination may be any memory, and changes only where the get writes',
  '',
  inComputation(async (b) => {
    const x = Float64Array.from([1, 2, 3, 4], (value) => value + 10 * b.pid);
    b.bsp.pushReg(x);
    await b.sync();
    const got = new Float64Array(4).fill(-1);
    b.bsp.get(b.right, x, 1, got, 2, 1);
    await b.sync();
    assert.deepEqual([...got], [-1, 2 + 10 * b.right, 3 + 10 * b.right, -1]);
  }),
);
requirement(
  'get',
  'many gets may read one place, and a process may get its own data',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1, b.pid + 1);
    const got = Array.from({ length: 30 }, () => one(0));
    for (const [i, to] of got.entries()) b.bsp.get(i % 2 === 0 ? 0 : b.pid, x, 0, to);
    await b.sync();
    assert.ok(got.every(([value], i) => value === (i % 2 === 0 ? 1 : b.pid + 1)));
  }),
);
requirement(
  'get',
  'a get may have any size, and a superstep any number of gets',
  '',
  inComputation(async (b) => {
    const x = Float64Array.from({ length: 9000 }, (_, i) => i + b.pid);
    b.bsp.pushReg(x);
    await b.sync();
    const [whole, parts] = [new Float64Array(9000), new Float64Array(9000)];
    b.bsp.get(b.right, x, 0, whole);
    for (let at = 0; at < 9000; at += 5) b.bsp.get(b.right, x, at, parts, 5, at);
    await b.sync();
    assert.ok(whole.every((value, i) => value === i + b.right && parts[i] === value));
  }),
);
requirement(
  'get',
  "a get past the end of the other process's variable is refused",
  '',
  inComputation(async (b) => {
    const x = await variable(b, 4);
    refuses('ERR_RMA_RANGE', () => b.bsp.get(b.right, x, 4, one(0)));
  }),
);

requirement(
  'messages',
  'tags have no bytes at first, and bsp_set_tagsize returns the previous size',
  '',
  inComputation(async (b) => {
    assert.equal(b.bsp.setTagsize(4), 0);
    await b.sync();
    assert.equal(b.bsp.setTagsize(8), 4);
    await b.sync();
    assert.equal(b.bsp.setTagsize(0), 8);
  }),
);
requirement(
  'messages',
  'a new tag size takes effect with the next superstep; queued messages keep theirs',
  '',
  inComputation(async (b) => {
    b.bsp.setTagsize(8);
    refuses('ERR_TRUNCATE', () => b.bsp.send(b.right, one(1), null));
    await b.sync();
    b.bsp.setTagsize(0);
    b.bsp.send(b.right, one(b.pid), null);
    await b.sync();
    const tag = one(-1);
    assert.equal(b.bsp.getTag(tag), 0);
    assert.equal(tag[0], b.left);
    b.bsp.send(b.right, null, null);
    await b.sync();
    assert.equal(b.bsp.hpmove()!.tag.length, 0);
  }),
);
requirement(
  'messages',
  'all processes must set the same tag size: otherwise each gets an error',
  '',
  inComputation(async (b) => {
    b.bsp.setTagsize(b.pid === 0 ? 4 : 8);
    await allLearn(b, b.bsp.sync());
  }, true),
  2,
);
requirement(
  'messages',
  'bsp_send has copied payload and tag when it returns',
  '',
  inComputation(async (b) => {
    b.bsp.setTagsize(8);
    await b.sync();
    const [tag, payload] = [one(b.pid), one(b.pid + 0.5)];
    b.bsp.send(b.right, tag, payload);
    tag[0] = payload[0] = Number.NaN;
    await b.sync();
    const [gotTag, got] = [one(0), one(0)];
    b.bsp.getTag(gotTag);
    b.bsp.move(got);
    assert.deepEqual([gotTag[0], got[0]], [b.left, b.left + 0.5]);
  }),
);
requirement(
  'messages',
  'a message is in the queue in the superstep after the one in which it was sent, and in no later one',
  '',
  inComputation(async (b) => {
    b.bsp.send(b.right, null, one(1));
    assert.equal(b.bsp.qsize().messages, 0);
    await b.sync();
    assert.equal(b.bsp.qsize().messages, 1);
    await b.sync();
    assert.equal(b.bsp.qsize().messages, 0);
  }),
);
requirement(
  'messages',
  'each process may send any number of messages, which arrive in any order',
  '',
  inComputation(async (b) => {
    for (let i = 0; i < 700; i++) b.bsp.send(i % b.nprocs, null, Float64Array.of(b.pid, i));
    await b.sync();
    const seen: string[] = [];
    for (let message = b.bsp.hpmove(); message !== undefined; message = b.bsp.hpmove()) {
      seen.push([...new Float64Array(message.payload.buffer, message.payload.byteOffset, 2)].join());
    }
    const expected: string[] = [];
    for (let pid = 0; pid < b.nprocs; pid++) for (let i = b.pid; i < 700; i += b.nprocs) expected.push(`${pid},${i}`);
    assert.deepEqual(seen.sort(), expected.sort());
  }),
);
requirement(
  'messages',
  'bsp_qsize returns the number of messages in the queue and the bytes of their payloads',
  '',
  inComputation(async (b) => {
    for (const length of [0, 3, 100_000]) b.bsp.send(b.right, null, new Uint8Array(length));
    await b.sync();
    assert.deepEqual(b.bsp.qsize(), { messages: 3, bytes: 100_003 });
    const bytes = b.bsp.getTag();
    b.bsp.move(new Uint8Array(bytes));
    assert.deepEqual(b.bsp.qsize(), { messages: 2, bytes: 100_003 - bytes });
  }),
);
requirement(
  'messages',
  'bsp_get_tag returns the size of the first payload and its tag without removing it; −1 if there is none',
  '',
  inComputation(async (b) => {
    b.bsp.setTagsize(8);
    await b.sync();
    assert.equal(b.bsp.getTag(), -1);
    b.bsp.send(b.right, one(3), new Uint8Array(5));
    await b.sync();
    const tag = one(0);
    assert.deepEqual([b.bsp.getTag(tag), b.bsp.getTag(tag), tag[0], b.bsp.qsize().messages], [5, 5, 3, 1]);
  }),
);
requirement(
  'messages',
  'bsp_move copies as much of the first payload as fits, and removes the message from the queue',
  '',
  inComputation(async (b) => {
    b.bsp.send(b.right, null, Uint8Array.of(1, 2, 3));
    b.bsp.send(b.right, null, Uint8Array.of(4, 5));
    await b.sync();
    const got = new Uint8Array(4);
    assert.deepEqual([b.bsp.move(got.subarray(0, 2)), [...got]], [2, [1, 2, 0, 0]]);
    assert.deepEqual([b.bsp.move(got), [...got]], [2, [4, 5, 0, 0]]);
    refuses('ERR_RMA_RANGE', () => b.bsp.move(got));
  }),
);

requirement(
  'high performance',
  'bsp_hpput does what bsp_put does, if source and destination are left unchanged',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 3000);
    const source = Float64Array.from(x, (_, i) => i * (b.pid + 1));
    b.bsp.hpput(b.right, source, x);
    await b.sync();
    assert.ok(x.every((value, i) => value === i * (b.left + 1)));
  }),
);
requirement(
  'high performance',
  'bsp_hpget does what bsp_get does, if source and destination are left unchanged',
  '',
  inComputation(async (b) => {
    const x = Float64Array.from({ length: 3000 }, (_, i) => i * (b.pid + 1));
    b.bsp.pushReg(x);
    await b.sync();
    const got = new Float64Array(3000);
    b.bsp.hpget(b.right, x, 0, got);
    await b.sync();
    assert.ok(got.every((value, i) => value === i * (b.right + 1)));
  }),
);
requirement(
  'high performance',
  'bsp_hpmove returns tag and payload in place, valid until the next superstep ends',
  '',
  inComputation(async (b) => {
    b.bsp.setTagsize(3);
    await b.sync();
    b.bsp.send(b.right, Uint8Array.of(1, 2, b.pid), Uint8Array.of(b.pid, 7));
    await b.sync();
    const { tag, payload } = b.bsp.hpmove()!;
    assert.equal(b.bsp.hpmove(), undefined);
    b.bsp.send(b.right, Uint8Array.of(0, 0, 0), new Uint8Array(2));
    assert.deepEqual(
      [[...tag], [...payload]],
      [
        [1, 2, b.left],
        [b.left, 7],
      ],
    );
  }),
);

requirement(
  'beyond',
  'puts of one process to one place are written in the order of their calls',
  '',
  inComputation(async (b) => {
    const x = await variable(b, 1);
    for (let i = 0; i < 40; i++) b.bsp.put(b.right, one(i), x);
    await b.sync();
    assert.equal(x[0], 39);
  }),
);
requirement(
  'beyond',
  'messages of one process arrive in the order of their calls',
  '',
  inComputation(async (b) => {
    for (let i = 0; i < 40; i++) b.bsp.send(b.right, null, one(i));
    await b.sync();
    for (let i = 0; i < 40; i++) assert.equal(new Float64Array(b.bsp.hpmove()!.payload.slice().buffer)[0], i);
  }),
);
requirement('beyond', 'one computation may follow another, and groups of ranks may have their own', '', async (t) => {
  for (let i = 0; i < 3; i++) await (await begin(t.comm)).end();
  const part = (await t.comm.split(t.rank % 2))!;
  const own = await begin(part);
  const x = new Float64Array(1);
  own.pushReg(x);
  await own.sync();
  own.put((own.pid + 1) % own.nprocs, one(t.rank % 2), x);
  await own.end();
  assert.equal(x[0], t.rank % 2);
  await part.free();
});
requirement('beyond', 'random programs leave the same data as a sequential model', '', async (t) => {
  for (const way of waysOf(t)) await bspRandom(t.comm, t.shared.below(2 ** 31), t.blocks, way);
});
lossy('beyond', 'random programs by datagrams leave the same data, however many of these are lost', '', async (t) => {
  await bspRandom(t.comm, t.shared.below(2 ** 31), t.blocks, datagramsOf(t));
});
