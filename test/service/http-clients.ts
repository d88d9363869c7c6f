/** Clients that ask an HTTP server, each by a connection of its own, one request after the other. */
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

export class Client {
  readonly #port: number;
  #agent: Agent;

  constructor(port: number) {
    this.#port = port;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1 });
  }

  /** The body of the answer. Fails where the connection ends before it is whole, or there is none. */
  async ask(path: string): Promise<string> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port: this.#port, path, agent: this.#agent }, resolve);
      // A connection that was given to a worker that dies at once is answered by nobody.
      asked.setTimeout(20_000, () => asked.destroy(new Error('no answer')));
      asked.on('error', reject).end();
    });
    const body = await text(response);
    if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${body}`);
    return body;
  }

  /** The next request is sent by another connection. */
  disconnect(): void {
    this.#agent.destroy();
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1 });
  }
}
