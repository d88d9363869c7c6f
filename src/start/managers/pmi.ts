/**
 * PMI, versions 1 and 2, as a process speaks it to the manager that started it: text over the socket that the
 * environment names in `PMI_FD`. MPICH's `mpiexec` (Hydra) and its relatives speak version 1; Slurm's `srun --mpi=pmi2`
 * speaks both.
 *
 * Version 1 is lines of `cmd=NAME key=value …`. Version 2 begins with such a line and goes on with messages of
 * `cmd=NAME;key=value;…`, each after its length in six characters. Both keep a space of keys and values, in which all
 * ranks can read what others have put, once all have met at a fence.
 */
import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import { RmaError, show } from '../../errors.ts';
import { type Patience, type ProcessManager, readNumber, removeVariables } from './manager.ts';

/** The most a manager may send in one message; more is not PMI. */
const MESSAGE_CHARACTERS = 65_536;

type Answer = ReadonlyMap<string, string>;

/** The manager that the environment names, if any. */
export function findPmi(): ProcessManager | undefined {
  const { PMI_FD, PMI_JOBID } = process.env;
  if (PMI_FD === undefined) return undefined;
  const fd = readNumber('PMI_FD');
  const rank = readNumber('PMI_RANK');
  const size = readNumber('PMI_SIZE');
  if (!(rank < size)) {
    const { PMI_RANK, PMI_SIZE } = process.env;
    throw new RmaError(
      'ERR_COMM',
      `init: PMI_RANK=${PMI_RANK} and PMI_SIZE=${PMI_SIZE} are not the rank and the size of a job`,
    );
  }
  // Slurm says which job, Hydra need not. Either answers both versions, so a variable left over from an outer job does
  // no harm.
  const version = PMI_JOBID === undefined ? 1 : 2;
  const name = version === 1 ? 'mpiexec (PMI-1)' : 'srun (PMI-2)';
  return {
    rank,
    size,
    name,
    exchange: async (card, patience) => {
      const wire = new Wire(openSocket(fd), name, patience);
      try {
        return version === 1 ? await exchange1(wire, rank, size, card) : await exchange2(wire, rank, size, card);
      } finally {
        wire.close();
      }
    },
    forget: () => removeVariables('PMI_FD', 'PMI_RANK', 'PMI_SIZE', 'PMI_JOBID', 'PMI_PORT', 'PMI_ID'),
  };
}

function openSocket(fd: number): Socket {
  try {
    if (fstatSync(fd).isSocket()) return new Socket({ fd, readable: true, writable: true });
  } catch {
    // It is not open.
  }
  throw new RmaError(
    'ERR_COMM',
    `init: PMI_FD=${process.env['PMI_FD']} is not, or is no longer, a connection to a process manager; ` +
      'let mpiexec or srun start "node app.js" directly (npx does not pass the connection on), and call init() ' +
      'in one thread only, or unset PMI_FD to run alone',
  );
}

async function exchange1(wire: Wire, rank: number, size: number, card: string): Promise<string[]> {
  const ask = async (request: string, reply: string): Promise<Answer> => {
    wire.send(`cmd=${request}\n`);
    return wire.expect(reply, parse(await wire.line(), ' '));
  };
  await ask('init pmi_version=1 pmi_subversion=1', 'response_to_init');
  const kvs = (await ask('get_my_kvsname', 'my_kvsname')).get('kvsname');
  await ask(`put kvsname=${kvs} key=onesided-${rank} value=${card}`, 'put_result');
  await ask('barrier_in', 'barrier_out');
  const cards: string[] = [];
  for (let other = 0; other < size; other++) {
    const found = other === rank ? undefined : await ask(`get kvsname=${kvs} key=onesided-${other}`, 'get_result');
    cards.push(found === undefined ? card : wire.valueOf(found, other));
  }
  await ask('finalize', 'finalize_ack');
  return cards;
}

async function exchange2(wire: Wire, rank: number, size: number, card: string): Promise<string[]> {
  const ask = async (request: string, reply: string): Promise<Answer> => {
    const message = `cmd=${request};`;
    wire.send(`${String(message.length).padStart(6)}${message}`);
    return wire.expect(reply, parse(await wire.frame(), ';'));
  };
  wire.send('cmd=init pmi_version=2 pmi_subversion=0\n');
  wire.expect('response_to_init', parse(await wire.line(), ' '));
  const job = process.env['PMI_JOBID']!;
  await ask(`fullinit;pmijobid=${job};pmirank=${rank};threaded=FALSE`, 'fullinit-response');
  await ask(`kvs-put;key=onesided-${rank};value=${card}`, 'kvs-put-response');
  await ask('kvs-fence', 'kvs-fence-response');
  const cards: string[] = [];
  for (let other = 0; other < size; other++) {
    const request = `kvs-get;jobid=${job};srcid=-1;key=onesided-${other}`;
    cards.push(other === rank ? card : wire.valueOf(await ask(request, 'kvs-get-response'), other));
  }
  await ask('finalize', 'finalize-response');
  return cards;
}

/** `key=value` pairs; what has no `=` belongs to no key. */
function parse(text: string, separator: string): Answer {
  const pairs = new Map<string, string>();
  for (const word of text.split(separator)) {
    const at = word.indexOf('=');
    if (at > 0) pairs.set(word.slice(0, at).trim(), word.slice(at + 1));
  }
  return pairs;
}

/** The connection, read in pieces that the protocol says. One request is under way at a time. */
class Wire {
  #socket: Socket;
  #name: string;
  #text = '';
  #ended: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(socket: Socket, name: string, { signal }: Patience) {
    this.#socket = socket;
    this.#name = name;
    const end = (error: Error): void => {
      this.#ended ??= error;
      this.#wake?.();
    };
    const closed = (cause?: unknown): void =>
      end(new RmaError('ERR_COMM', `init: ${name} closed the connection before all ranks had joined`, { cause }));
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#text += text;
      this.#wake?.();
    });
    socket.on('error', closed);
    socket.on('end', () => closed());
    const onAbort = (): void => end(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('close', () => signal.removeEventListener('abort', onAbort));
  }

  send(text: string): void {
    this.#socket.write(text, 'latin1');
  }

  /** A line, without its end. */
  line(): Promise<string> {
    return this.#take((text) => {
      const at = text.indexOf('\n');
      return at < 0 ? undefined : [0, at, at + 1];
    });
  }

  /** A message of version 2, without its length. */
  frame(): Promise<string> {
    return this.#take((text) => {
      if (text.length < 6) return undefined;
      const length = Number(text.slice(0, 6));
      if (!Number.isInteger(length) || length < 0) throw this.#nonsense(text.slice(0, 80));
      return text.length < 6 + length ? undefined : [6, 6 + length, 6 + length];
    });
  }

  /** The answer, if it is the one to the question and not a refusal. */
  expect(command: string, answer: Answer): Answer {
    const rc = answer.get('rc') ?? '0';
    if (answer.get('cmd') === command && rc === '0') return answer;
    throw this.#nonsense([...answer].map(([key, value]) => `${key}=${value}`).join(' '), command);
  }

  valueOf(answer: Answer, rank: number): string {
    const value = answer.get('value');
    if (value !== undefined) return value;
    throw new RmaError(
      'ERR_COMM',
      `init: ${this.#name} has no data from rank ${rank}: that process does not run onesided`,
    );
  }

  close(): void {
    this.#socket.destroy();
  }

  /**
   * @param find where the wanted piece begins and ends in what has come, and where the next one begins; nothing if it
   * has not come whole
   */
  async #take(find: (text: string) => [number, number, number] | undefined): Promise<string> {
    for (;;) {
      const found = find(this.#text);
      if (found !== undefined) {
        const [from, to, next] = found;
        const piece = this.#text.slice(from, to);
        this.#text = this.#text.slice(next);
        return piece;
      }
      if (this.#ended !== undefined) throw this.#ended;
      if (this.#text.length > MESSAGE_CHARACTERS) throw this.#nonsense(this.#text.slice(0, 80));
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #nonsense(text: string, command?: string): RmaError {
    const wanted = command === undefined ? 'which is not valid PMI' : `but onesided expected ${command} with rc=0`;
    return new RmaError('ERR_COMM', `init: ${this.#name} answered ${show(text)}, ${wanted}`);
  }
}
