/**
 * Sessions of express in a map that all workers share: `npm install express express-session`, then
 *
 *     node examples/services/express-sessions.js [port]     in as many processes as you like, or under node:cluster
 */
import cluster from 'node:cluster';
import express from 'express';
import session from 'express-session';
import { Service } from 'onesided/service';

/** A store of express-session: a key for each session, which expires with its cookie. */
class SharedStore extends session.Store {
  constructor(map) {
    super();
    this.map = map;
  }

  get(id, done) {
    done(null, this.map.get(id));
  }

  set(id, data, done) {
    const { expires } = data.cookie;
    const ttl = expires ? Math.max(1, new Date(expires) - Date.now()) : 24 * 3600 * 1000;
    this.map.promises.set(id, data, { ttl }).then(() => done?.(null), done);
  }

  touch(id, data, done) {
    this.set(id, data, done);
  }

  destroy(id, done) {
    this.map.promises.delete(id).then(() => done?.(null), done);
  }
}

const service = await Service.join('express-sessions');
if (cluster.isPrimary && process.argv[3] !== 'alone') {
  for (let i = 0; i < 4; i++) cluster.fork();
  cluster.on('exit', () => cluster.fork());
} else {
  const store = new SharedStore(await service.map('sessions', { bytes: 64 << 20 }));
  const app = express();
  app.use(
    session({ store, secret: 'change me', resave: false, saveUninitialized: true, cookie: { maxAge: 3_600_000 } }),
  );
  app.get('/', (request, response) => {
    request.session.views = (request.session.views ?? 0) + 1;
    response.json({ place: service.place, views: request.session.views });
  });
  app.listen(Number(process.argv[2] ?? 8080));
}
