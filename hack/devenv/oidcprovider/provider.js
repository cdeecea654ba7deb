// An identity provider on loopback, for tests.
//
//   provider.js PORT REDIRECT_URI...
//
// The client is "mnemo" with the secret "secret". Every user name is accepted with any password and becomes the email
// address; the address is verified unless it begins with "unverified". ID tokens expire after a minute.
import { createHash } from 'node:crypto';
import Provider from 'oidc-provider';

const [port, ...redirects] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [{ client_id: 'mnemo', client_secret: 'secret', redirect_uris: redirects }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['for tests'] },
  ttl: { AccessToken: 60, IdToken: 60, Interaction: 600, Session: 600, Grant: 600 },
  findAccount: (_, login) => ({
    accountId: login,
    claims: () => ({
      sub: createHash('sha256').update(login).digest('hex'),
      email: login,
      email_verified: !login.startsWith('unverified'),
    }),
  }),
});
provider.listen(Number(port), '127.0.0.1', () => console.log(`listening on ${issuer}`));
