/** A process manager of the tests' own that speaks PMI-1 or PMI-2, and can be wrong in every way. */
import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';

/** What is sent instead of an answer; nothing: the connection ends. */
export type Tamper = (answer: string, request: string) => string | undefined;

/**
 * Starts ranks as `mpiexec` and `srun` do, and serves them: answers each request to one rank or, at a fence, to all.
 * The ranks have a socket to it as descriptor 3.
 */
export class Pmi<T extends { readonly child: ChildProcess }> {
  readonly started: T[] = [];
  readonly requests: string[] = [];
  #sockets: Socket[] = [];
  #version: 1 | 2;
  #values = new Map<string, string>();
  #waiting: Socket[] = [];
  #tamper: Tamper;

  /** @param start starts a rank with these variables of the environment */
  constructor(
    size: number,
    version: 1 | 2,
    start: (environment: Record<string, string>) => T,
    tamper: Tamper = (answer) => answer,
  ) {
    this.#version = version;
    this.#tamper = tamper;
    for (let rank = 0; rank < size; rank++) {
      const started = start({
        PMI_FD: '3',
        PMI_RANK: String(rank),
        PMI_SIZE: String(size),
        ...(version === 2 && { PMI_JOBID: 'job' }),
      });
      this.started.push(started);
      const { child } = started;
      const socket = child.stdio[3] as unknown as Socket;
      this.#sockets.push(socket);
      let text = '';
      socket.on('error', () => {});
      socket.on('data', (bytes: Buffer) => {
        text += bytes.toString('latin1');
        for (;;) {
          const line = /^cmd=[^\n]*\n/.exec(text)?.[0] ?? this.#frame(text);
          if (line === undefined) break;
          text = text.slice(line.length);
          this.#serve(socket, line.replace(/^ *\d+/, '').trim());
        }
      });
    }
  }

  #frame(text: string): string | undefined {
    const length = Number(text.slice(0, 6));
    return text.length >= 6 && text.length >= 6 + length ? text.slice(0, 6 + length) : undefined;
  }

  #send(socket: Socket, answer: string, request: string): void {
    const sent = this.#tamper(answer, request);
    if (sent === undefined) socket.end();
    else if (sent.endsWith('\n') || this.#version === 1) socket.write(sent.endsWith('\n') ? sent : `${sent}\n`);
    // In two pieces: a message may come in any.
    else {
      const frame = `${String(sent.length).padStart(6)}${sent}`;
      socket.write(frame.slice(0, 9));
      setTimeout(() => socket.write(frame.slice(9)), 1);
    }
  }

  #serve(socket: Socket, request: string): void {
    this.requests.push(request);
    const words = request.split(request.includes(';') ? ';' : ' ');
    const fields = new Map(words.map((word) => [word.split('=')[0], word.slice(word.indexOf('=') + 1)]));
    const command = fields.get('cmd')!;
    if (/put$/.test(command)) this.#values.set(fields.get('key')!, fields.get('value')!);
    const answer = this.#answer(command, this.#values.get(fields.get('key') ?? ''));
    if (!/barrier|fence/.test(command)) {
      this.#send(socket, answer, request);
      return;
    }
    this.#waiting.push(socket);
    if (this.#waiting.length < this.#sockets.length) return;
    for (const waiting of this.#waiting.splice(0)) this.#send(waiting, answer, request);
  }

  #answer(command: string, value: string | undefined): string {
    switch (command) {
      case 'init':
        return `cmd=response_to_init pmi_version=${this.#version} pmi_subversion=0 rc=0\n`;
      case 'get_my_kvsname':
        return 'cmd=my_kvsname kvsname=space';
      case 'put':
        return 'cmd=put_result rc=0 msg=success';
      case 'barrier_in':
        return 'cmd=barrier_out';
      case 'get':
        return `cmd=get_result rc=0 msg=success value=${value}`;
      case 'finalize':
        return this.#version === 1 ? 'cmd=finalize_ack' : 'cmd=finalize-response;rc=0;';
      case 'fullinit':
        return 'cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=0;size=1;rc=0;';
      case 'kvs-put':
      case 'kvs-fence':
        return `cmd=${command}-response;rc=0;`;
      case 'kvs-get':
        return `cmd=kvs-get-response;${value === undefined ? 'found=FALSE' : `found=TRUE;value=${value}`};rc=0;`;
      default:
        throw new Error(`not PMI: ${command}`);
    }
  }
}
