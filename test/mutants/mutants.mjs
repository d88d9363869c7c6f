/**
 * Faults in src/window that some test must find: each one replaces a piece of one file, which occurs there once.
 * `npm run test:mutants` tries them. Of calls that must wait for their requests there are few here: the emulator
 * carries requests out at once, so only a device shows that one of them does not.
 */
const CALLS = 'src/window/calls';
const EPOCHS = 'src/window/epochs/epochs.ts';
const PASSIVE = `${CALLS}/passive-target.ts`;
const SLOW = `${CALLS}/slow-path.ts`;
const FAST = `${CALLS}/fast-path.ts`;

/** What is wrong, where, what is replaced, and by what. */
export const MUTANTS = [
  ['displacements count bytes', SLOW, 'const at = disp * t.dispUnit;', 'const at = disp;'],
  ['the end of a part is no limit', SLOW, 'at + to.high > t.byteLength', 'at > t.byteLength'],
  ['its beginning is none for layouts', SLOW, '|| at + to.low < 0 ||', '||'],
  [
    'updates replace',
    SLOW,
    'path.update(origin, from, at, to, op.code, fetched);',
    'path.update(origin, from, at, to, Op.REPLACE.code, fetched);',
  ],
  [
    'operations need not be defined on their type',
    SLOW,
    'if (!opAllowed(op.code, to.base)) {',
    'if (op === undefined) {',
  ],
  [
    'origins may overlap the own part',
    SLOW,
    'if (own === undefined) return;',
    'if (own === undefined || t !== undefined) return;',
  ],
  [
    'atomic calls take unaligned places',
    SLOW,
    'if (place % needed === 0 && isAligned(to, needed)) return;',
    'if (place >= 0) return;',
  ],
  [
    'the short way to fetch forgets the unit',
    FAST,
    'return kind.fetch(t, Math.imul(disp, t.dispUnit) + t.skew, origin, result, op);',
    'return kind.fetch(t, disp + t.skew, origin, result, op);',
  ],
  [
    'the short way sees no own part',
    FAST,
    'return tagOf(buffer) === undefined || bufferOf(buffer) === t.own;',
    'return tagOf(buffer) === undefined;',
  ],
  [
    'a swap ignores what it compares',
    'src/window/path/load-path.ts',
    'Atomics.compareExchange(view, index, compare[0] as number, origin[0] as number)',
    'Atomics.exchange(view, index, origin[0] as number)',
  ],
  [
    'gets by loads forget where a region begins',
    'src/window/path/load-path.ts',
    'copyPlaces(to, part.u8, at + skew, from, origin, 0, this.#kernels);',
    'copyPlaces(to, part.u8, at, from, origin, 0, this.#kernels);',
  ],
  [
    'every call is allowed without an epoch',
    EPOCHS,
    '  allows(t: Target): boolean {\n    return (this.#open | t.held) !== 0;',
    '  allows(t: Target): boolean {\n    return (this.#open | t.held) >= 0;',
  ],
  [
    'what a fence has ended counts as issued',
    EPOCHS,
    '    this.#busy = undefined;\n    this.#issued = 0;\n',
    '    this.#busy = undefined;\n',
  ],
  ['NO_SUCCEED opens an epoch', EPOCHS, 'this.#open = opens ? FENCE : 0;', 'this.#open = opens || !opens ? FENCE : 0;'],
  [
    'NO_PRECEDE is not verified',
    EPOCHS,
    'if (noPrecede && this.#isUsed && this.#open === FENCE) {',
    'if (noPrecede && this.#isUsed && this.#open < 0) {',
  ],
  [
    'puts go on behind complete',
    EPOCHS,
    '    for (let i = 0; i < targets.length; i++) this.find(targets[i])!.held = 0;',
    '    for (let i = 0; i < 0 * targets.length; i++) this.find(targets[i])!.held = 0;',
  ],
  [
    'a part may be exposed while it is locked',
    EPOCHS,
    '    if (this.#ownLocked)\n      throw',
    '    if (this.#ownLocked && this.#isExposed)\n      throw',
  ],
  ['a lock is counted for ever', EPOCHS, '    t.held = 0;\n    this.#held--;\n', '    t.held = 0;\n'],
  ['lockAll stays open', EPOCHS, '  unlockedAll(): void {\n    this.#open = 0;', '  unlockedAll(): void {'],
  [
    'exclusive locks are shared',
    PASSIVE,
    'if (!this.#locks.mayAsk || !this.#tryAcquire(t.lock!, type === LockBit.EXCLUSIVE)) return false;',
    'if (!this.#locks.mayAsk || !this.#tryAcquire(t.lock!, type < 0)) return false;',
  ],
  [
    'exclusive locks are given back as shared ones',
    PASSIVE,
    'if ((held & UNCHECKED) === 0) this.#release(t.lock!, held === LockBit.EXCLUSIVE);',
    'if ((held & UNCHECKED) === 0) this.#release(t.lock!, held < 0);',
  ],
  [
    'unlock does not wait for its requests',
    PASSIVE,
    '      await this.#flushed(FLUSHES.unlock, t, options);\n',
    '      await undefined;\n',
  ],
  [
    'unlockAll does not wait for its requests',
    PASSIVE,
    '      await this.#flushed(FLUSHES.unlockAll, undefined, options);\n',
    '      await undefined;\n',
  ],
  [
    'lockAll keeps some locks when it fails',
    PASSIVE,
    '      while (--i >= 0) this.#release(targets[i].lock!, false);\n',
    '',
  ],
  [
    'an exposure never ends',
    'src/window/epochs/exposure.ts',
    '  ended(): void {\n    this.#origins = undefined;',
    '  ended(): void {',
  ],
  [
    'ranks may pass different hints',
    'src/window/creation/agreement.ts',
    'if (hinted >= 0) {',
    'if (hinted > comm.size) {',
  ],
  [
    'attached regions may overlap',
    'src/window/attached/attachments.ts',
    'if (other !== undefined && address < other.address + other.bytes) {',
    'if (other !== undefined && address < other.address) {',
  ],
];
