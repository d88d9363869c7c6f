/** Whether the hosts of a job reach each other's endpoints by TCP. */
import { connect } from 'node:net';

/** `AF_INET` and `AF_INET6`, as a `sockaddr` begins with. */
const IPV4 = 2;
const IPV6 = 10;

interface Place {
  readonly host: string;
  readonly port: number;
}

/** Where an endpoint of TCP listens: its name is a `sockaddr_in` or `sockaddr_in6`. Nothing for other names. */
function placeNamed(name: Uint8Array): Place | undefined {
  if (name.length < 16 || name[1] !== 0) return undefined;
  const port = name[2] * 256 + name[3];
  if (name[0] === IPV4 && name.length === 16) return { host: name.slice(4, 8).join('.'), port };
  if (name[0] !== IPV6 || name.length !== 28) return undefined;
  const groups = Array.from({ length: 8 }, (_, i) => (name[8 + 2 * i] * 256 + name[9 + 2 * i]).toString(16));
  return { host: groups.join(':'), port };
}

/**
 * Whether TCP connections to an endpoint come about. Its kernel accepts them, so that it need not run for that, and it
 * takes no notice of one that says nothing.
 * @returns nothing, or where it was tried and why not
 * Errors: the signal's reason.
 */
export async function refusalAt(name: Uint8Array, withinMs: number, signal: AbortSignal): Promise<string | undefined> {
  const place = placeNamed(name);
  if (place === undefined) return undefined;
  signal.throwIfAborted();
  const socket = connect(place);
  const why = await new Promise<string | undefined>((resolve, reject) => {
    const timer = setTimeout(() => resolve(`no answer within ${withinMs / 1000} s`), withinMs);
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('connect', () => resolve(undefined));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('close', () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    });
  }).finally(() => socket.destroy());
  return why && `${place.host.includes(':') ? `[${place.host}]` : place.host}:${place.port} (${why})`;
}
