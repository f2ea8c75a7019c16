"""The tables that redaction reads: token shapes, cue words, and words that are not secrets. Nothing is compiled here.

Every line is a published fact about a token's shape (its prefix, its alphabet, its length) or a word that people put
before a secret. Lengths are lenient on purpose: vendors lengthen their tokens more often than they change a prefix.

Rule: a new vendor is a new line in VENDORS. Patterns use bounded repeats only; `{n,}` in VENDORS means "n or more,
as far as it goes" and is bounded when it is compiled.
"""


# ruff: noqa: E501  (tables: one fact a line)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# vendor, prefixes (comma separated), the pattern after the prefix.
# [W] letters and digits, [D] those and _ -, [U] capitals and digits, [L] small letters and digits, [H] hex in small
# letters, [X] hex, [B] base64 of either alphabet, [I] a UUID.
VENDORS = r"""
aws            AKIA,ASIA,ABIA,ACCA                                  [U]{16}
aws            ABSK                                                 [B]{80,}
aws            bedrock-api-key-                                     [B]{40,}
google         AIza                                                 [D]{33,37}
google         GOCSPX-                                              [D]{24,}
google         ya29.                                                [A-Za-z0-9_.-]{20,}
google         AQ.                                                  [D]{40,}
github         ghp_,gho_,ghu_,ghs_,ghr_                             [A-Za-z0-9_.-]{30,}
github         github_pat_                                          [D]{40,}
gitlab         glpat-,gldt-,glrt-,glrtr-,glcbt-,glptt-,glft-,glimt-,glagent-,gloas-,glsoat-,glffct-,glwt-  [A-Za-z0-9_.-]{20,}
gitlab         GR1348941                                            [D]{20,}
bitbucket      ATBB                                                 [W]{28,}
bitbucket      ATCTT3                                               [B]{50,}
bitbucket      BBDC-                                                [B]{40,}
atlassian      ATATT3,ATSTT3,ATOA                                   [B]{50,}
trello         ATTA                                                 [X]{60,}
slack          xoxb-,xoxp-,xoxa-,xoxr-,xoxs-,xoxo-,xoxc-,xoxd-,xoxe-,xoxe.xoxp-,xoxe.xoxb-,xapp-,xwfp-  [A-Za-z0-9%/+=_-]{18,}
stripe         sk_live_,sk_test_,rk_live_,rk_test_,pk_live_,pk_test_,sk_org_live_,ek_live_,ek_test_  [D]{10,}
stripe         whsec_                                               [B]{20,}
twilio         SK,AC                                                [H]{32}
sendgrid       SG.                                                  [D]{16,32}\.[D]{16,64}
mailgun        key-,pubkey-                                         [H]{32}
mailgun        private-,api-                                        [H]{32}-[H]{8}-[H]{8}
anthropic      sk-ant-                                              [D]{20,}
openrouter     sk-or-                                               [D]{20,}
langfuse       sk-lf-,pk-lf-                                        [I]
openai         sk-proj-,sk-svcacct-,sk-admin-,sk-None-,sk-          [D]{18,}
openai         sess-                                                [W]{36,}
huggingface    hf_,api_org_                                         [W]{30,}
npm            npm_                                                 [W]{30,}
pypi           pypi-                                                [D]{40,}
docker         dckr_pat_,dckr_oat_                                  [D]{20,}
digitalocean   dop_v1_,doo_v1_,dor_v1_,doa_v1_                      [X]{40,}
heroku         HRKU-                                                [D]{30,}
shopify        shpat_,shpca_,shppa_,shpss_,shptka_,shpua_           [W]{24,}
square         sq0atp-,sq0csp-,sq0idp-                              [D]{20,}
square         EAAA                                                 [D]{56,66}
newrelic       NRAK-,NRAA-,NRII-,NRJS-,NRIQ-,NRRA-,NRBR-,NRSP-      [D]{18,}
sentry         sntrys_,sntryu_,sntrya_,sntryi_                      [B]{40,}
grafana        glsa_                                                [W]{24,40}_[X]{8}
grafana        glc_,eyJrIjoi                                        [B]{30,}
vault          hvs.,hvb.,hvr.                                       [D]{20,}
vault          s.,b.                                                [W]{24}
terraform      tfe_,tfc_                                            [W]{30,}
databricks     dapi,dkea,dose,dsapi                                 [H]{32}
linear         lin_api_,lin_oauth_,lin_wh_                          [W]{30,}
notion         secret_                                              [W]{43}
notion         ntn_                                                 [W]{36,}
figma          figd_,figo_,figor_,figoh_,figur_,figuh_,figp_        [D]{36,}
airtable       pat                                                  [W]{14}\.[H]{64}
postman        PMAK-                                                [H]{24}-[H]{34}
postman        PMAT-                                                [U]{24,}
mapbox         pk.eyJ,sk.eyJ,tk.eyJ                                 [D]{20,}\.[D]{10,}
cloudflare     cfut_,cfat_,cfk_                                     [D]{36,}
cloudflare     v1.0-                                                [H]{20,32}-[H]{120,160}
netlify        nfp_,nfc_,nfo_,nfu_                                  [W]{30,}
vercel         vcp_,vci_,vca_,vcr_,vck_                             [D]{24,}
supabase       sbp_,sbp_v0_,sbp_oauth_                              [H]{40}
supabase       sb_secret_,sb_publishable_                           [D]{20,}
planetscale    pscale_tkn_,pscale_pw_,pscale_oauth_                 [A-Za-z0-9_.=-]{30,}
doppler        dp.pt.,dp.st.,dp.ct.,dp.sa.,dp.scim.,dp.audit.       [A-Za-z0-9_.-]{30,}
pulumi         pul-                                                 [H]{40}
okta           00                                                   [D]{40}
dropbox        sl.,sl.u.                                            [D]{100,}
meta           EAA                                                  [W]{60,}
meta           IGQV,IGAA                                            [D]{60,}
linkedin       WPL_AP1.                                             [A-Za-z0-9_.=-]{10,}
linkedin       AQ                                                   [D]{200,}
age            AGE-SECRET-KEY-1,AGE-SECRET-KEY-PQ-1,AGE-PLUGIN-     [A-Z0-9-]{50,}
1password      ops_eyJ                                              [B]{60,}
1password      A3-                                                  [U]{6}-[U]{5,11}-[U]{5}-[U]{5}-[U]{5}
rubygems       rubygems_                                            [X]{40,}
crates-io      cio                                                  [W]{32}
nuget          oy2                                                  [L]{43}
groq           gsk_                                                 [W]{40,}
replicate      r8_                                                  [D]{36,40}
perplexity     pplx-                                                [W]{40,}
xai            xai-                                                 [W]{60,}
nvidia         nvapi-                                               [D]{40,}
cerebras       csk-                                                 [W]{30,}
together       tgp_v1_                                              [D]{36,}
fireworks      fw_                                                  [W]{20,}
voyage         pa-                                                  [D]{40,}
jina           jina_                                                [D]{40,}
tavily         tvly-                                                [D]{20,}
firecrawl      fc-                                                  [H]{32}
e2b            e2b_,sk_e2b_                                         [H]{40}
langsmith      lsv2_pt_,lsv2_sk_                                    [H]{32}_[H]{8,12}
langsmith      ls__                                                 [H]{32}
pinecone       pcsk_                                                [D]{30,}
wandb          wandb_v1_                                            [D]{40,}
elevenlabs     sk_                                                  [H]{48}
runpod         rpa_                                                 [U]{36,}
modal          ak-,as-                                              [W]{22}
cursor         crsr_,key_                                           [H]{64}
tailscale      tskey-                                               [D]{20,}
sonarqube      sqp_,squ_,sqa_                                       [H]{40}
circleci       CCIPAT_,CCIPRJ_                                      [D]{30,}
buildkite      bkua_,bkct_,bkaj_                                    [D]{36,}
sourcegraph    sgp_,sgd_,slk_                                       [D]{40,}
posthog        phc_,phx_,phs_,pha_                                  [W]{30,}
render         rnd_                                                 [W]{24,}
fly            fo1_                                                 [D]{36,}
fly            fm1a_,fm1r_,fm2_                                     [A-Za-z0-9+/=_,-]{60,}
resend         re_                                                  [W]{6,12}_[W]{16,36}
brevo          xkeysib-,xsmtpsib-                                   [H]{64}-[W]{14,18}
mailersend     mlsn.                                                [H]{60,}
mandrill       md-                                                  [D]{22}
dynatrace      dt0c01.,dt0s01.,dt0s02.,dt0s08.,dt0s16.              [U]{8,24}\.[U]{60,66}
shippo         shippo_live_,shippo_test_                            [H]{40}
easypost       EZAK,EZTK                                            [W]{54}
flutterwave    FLWSECK-,FLWSECK_TEST-,FLWPUBK-                      [W]{12,64}
plaid          access-sandbox-,access-production-,access-development-  [I]
razorpay       rzp_live_,rzp_test_                                  [W]{14,24}
mollie         live_,test_                                          [W]{30}
lob            live_,test_                                          [H]{35}
gocardless     live_                                                [D]{38,42}
typeform       tfp_                                                 [D]{40,}
contentful     CFPAT-                                               [D]{40,}
prefect        pnu_,pnb_                                            [W]{36}
readme         rdme_                                                [L]{60,}
scalingo       tk-us-,tk-eu-                                        [D]{40,}
infracost      ico-                                                 [W]{32}
frameio        fio-u-                                               [D]{60,}
duffel         duffel_live_,duffel_test_                            [A-Za-z0-9_=-]{40,}
clojars        CLOJARS_                                             [L]{60}
alibaba        LTAI                                                 [W]{12,22}
tencent        AKID                                                 [D]{32}
yandex         AQVN                                                 [D]{35,}
yandex         y0_,y1_,y2_,y3_                                      [D]{50,}
volcengine     AKLT                                                 [D]{40,}
adafruit       aio_                                                 [W]{28}
adobe          p8e-                                                 [D]{32}
artifactory    AKCp,cmVmdGtuOj                                      [W]{50,}
hubspot        pat-na1-,pat-na2-,pat-eu1-,pat-ap1-                  [I]
intercom       dG9rO                                                [B]{50,}
launchdarkly   sdk-,mob-,api-                                       [I]
octopus        API-                                                 [U]{26,36}
wakatime       waka_                                                [I]
zuplo          zpka_                                                [W]{32}_[W]{8}
dbt            dbtc_,dbtu_                                          [A-Za-z0-9_=-]{30,}
neon           napi_                                                [W]{40,}
mongodb        mdb_sa_sk_                                           [D]{30,}
elastic        essu_                                                [B]{30,}
honeycomb      hcaik_,hcaic_,hcalk_,hcxik_,hcxlk_,hcamk_,hcbik_     [W]{40,}
n8n            n8n_api_                                             [A-Za-z0-9_.-]{30,}
gitea          gto_,gta_                                            [W]{40,}
harness        pat.,sat.                                            [D]{20,24}\.[X]{24}\.[W]{18,22}
infisical      st.                                                  [D]{16,40}\.[H]{32}\.[H]{32}
settlemint     sm_pat_,sm_aat_,sm_sat_                              [W]{16,}
boundary       at_                                                  [W]{10}_[W]{40,}
nostr          nsec1                                                [L]{58}
bitcoin        xprv,yprv,zprv,tprv                                  [W]{100,112}
paseto         v1.local.,v2.local.,v3.local.,v4.local.,v2.public.,v4.public.  [A-Za-z0-9_.-]{30,}
jwt            eyJ                                                  [D]{8,}\.[D]{8,}[A-Za-z0-9_.-]{0,4000}+
jwt            eyJhbGciOi,eyJ0eXAiOi,eyJraWQiOi                     [D]{20,}
"""

# Shapes that no prefix gives away: a literal that must be in the text before the pattern is worth running, the kind, and
# the pattern, whose group 1 is the secret and must not follow a letter or digit.
PGPASS = r"^[ \t]{0,8}+[\w.*-]{1,255}+:(?:[0-9]{4,5}|\*):[\w.*-]{1,64}+:[\w.*@-]{1,64}+:(\S{3,128}+)[ \t]{0,8}+$"
AWS_PAIR = (  # an id and its secret side by side, as consoles export them
    r"""A[KS]IA[A-Z0-9]{16}["']?(?:[ \t]{0,4}[,;:|/][ \t]{0,4}+|[ \t]{1,8}+|[ \t]{0,4}\r?\n[ \t]{0,8}+)["']?"""
    r"""([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"""
)
ASANA = r"([0-2]/\d{12,20}+(?:/\d{12,20}+)?:[0-9a-f]{32})(?![0-9A-Za-z])"
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("AKIA", "aws", AWS_PAIR),
    ("ASIA", "aws", AWS_PAIR),
    ("hooks.slack.com", "slack", r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{20,200}+)"),
    ("/webhooks/", "discord", r"/api/(?:v\d{1,2}/)?webhooks/(\d{10,25}+/[\w-]{40,120}+)"),
    ("webhook.office.com", "teams", r"webhook\.office\.com/webhookb2/([\w@/.-]{40,300}+)"),
    ("hooks.zapier.com", "zapier", r"hooks\.zapier\.com/hooks/catch/([\w/]{8,100}+)"),
    (":AA", "telegram", r"(\d{8,10}+:AA[\w-]{30,40}+)(?![\w-])"),
    (":APA91b", "firebase", r"([\w-]{8,40}+:APA91b[\w-]{60,250}+)"),
    ("1//0", "google", r"(1//0[\w-]{30,200}+)"),
    ("access_token$", "paypal", r"(access_token\$(?:production|sandbox)\$[a-z0-9]{8,20}+\$[0-9a-f]{32})"),
    (".atlasv1.", "terraform", r"([A-Za-z0-9]{14}\.atlasv1\.[\w-]{50,90}+)"),
    ("Q~", "azure", r"([\w~.-]{3}\dQ~[\w~.-]{30,36})(?![\w~-])"),
    ("QQJ99", "azure", r"([A-Za-z0-9]{40,60}J[A-Z0-9]?QQJ99[A-Za-z0-9]{20,40}+)"),
    ("+A", "azure", r"([A-Za-z0-9+/]{76}(?:\+ASt|\+ABa|\+AMC)[A-Za-z0-9+/]{5,6}+==)"),
    ("ACDb", "azure", r"([A-Za-z0-9+/]{76}ACDb[A-Za-z0-9+/]{5,6}+==)"),
    ("sha256~", "openshift", r"(sha256~[\w-]{43})(?![\w-])"),
    ("oauth:", "twitch", r"oauth:([a-z0-9]{30})(?![a-z0-9])"),
    ("NRAL", "newrelic", r"([0-9a-f]{30,40}+NRAL)(?![A-Za-z0-9])"),
    ("jsn", "rapidapi", r"([a-z0-9]{10}msh[a-z0-9]{15}p1[a-z0-9]{6}jsn[a-z0-9]{12})(?![a-z0-9])"),
    ("-us", "mailchimp", r"([0-9a-f]{32}-us\d{1,2}+)(?![0-9A-Za-z-])"),
    ("AAAAAAAAAAAAAAAAAAAA", "twitter", r"(A{19,24}+[\w%]{20,60}?%[\w%]{20,120}+)"),
    ("|", "meta", r"(\d{13,17}+\|[A-Za-z0-9_-]{25,30}+)(?![\w-])"),
    ("0/", "asana", ASANA),
    ("1/", "asana", ASANA),
    ("2/", "asana", ASANA),
    ("b3BlbnNzaC1rZXktdjE", "private-key", r"(b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=\s]{40,8000}+)"),
    ("IBA", "private-key", r"(MII[A-Z][A-Za-z0-9+/]{2}IBA[AD][A-Za-z0-9+/=]{60,8000}+)"),
    ("$", "password-hash", r"(\$(?:[1567y]|2[abxy]|apr1)\$[\w./,=$+-]{20,200}+)"),
    ("$argon2", "password-hash", r"(\$argon2(?:id|i|d)\$[\w./,=$+-]{20,300}+)"),
    ("pbkdf2", "password-hash", r"(pbkdf2[_:]sha\d{1,3}[\w:]{0,10}+\$[\w./=$+-]{30,200}+)"),
    ("scrypt:", "password-hash", r"(scrypt:[\d:]{3,20}+\$[\w./=$+-]{30,300}+)"),
    ("SHA}", "password-hash", r"(\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{24,120}+)"),
    ("jwt.", "secret", r"""jwt\.(?:sign|verify|encode|decode)\([^()"',\n]{1,80}+,\s{0,4}+["']([^"'\s]{8,400}+)["']"""),
    ("createHmac(", "secret", r"""createHmac\(["'][\w-]{3,20}+["'],\s{0,4}+["']([^"'\s]{8,400}+)["']"""),
    ("hmac.new(", "secret", r"""hmac\.new\(\s{0,4}+b?["']([^"'\s]{8,400}+)["']"""),
    ("untrusted", "private-key", r"untrusted comment: [^\n]{0,80}?secret key[^\n]{0,80}+\n([A-Za-z0-9+/=]{40,400}+)"),
    ("kty", "private-key", r"""["']\s{0,4}+(?:d|p|q|dp|dq|qi|k)["']\s{0,4}+:\s{0,4}+["']\s{0,4}+([\w-]{20,2000}+)"""),
    ("@", "password", r""":(?<=\w:)(?![0-9]{1,8}+@)([^\s:@/"'`]{6,128}+)@(?:[0-9]{1,3}+\.){3}[0-9]{1,3}+(?![\w.])"""),
    (":54", "password", PGPASS),
    (":*:", "password", PGPASS),
)  # fmt: skip

# Between two pieces of one value: the signs that join string literals, or the line break of a wrapped text.
QUOTES_JOINED = r"""["'`]\s{0,40}+(?:(?:\+|\.|&|\|\|)[ \t]{0,4}+(?:_[ \t]{0,4}+)?\\?\s{0,40}+)?["'`]"""
LISTED = r"""["'`],\s{0,40}+["'`]"""  # arguments of `concat` or `join`
LINES_JOINED = r"(?:[ \t]{0,2}+\r?\n[ \t>|#*]{0,16}+|[ ]{2})"

# Marks in the prefix of a token that no line above knows: acme_sk_live_…, foo-api-key-…, bar_pat_….
TOKEN_MARKS = _words("sk pat key apikey api secret token tok live prod auth oauth access refresh bot svc webhook")
TOKEN_MARKS_FOR_HEX = _words("sk pat apikey secret token")  # `prod-<git hash>` is an image tag, not a key

# Words before a secret, in small letters; accents do not matter. `^`: only at the start of a word or hump of an
# identifier (`dbPass`, not `compass`); `$`: only at its end (`pass`, not `passed`); `~`: a space, hyphen, dot, underscore.
CUES: dict[str, str] = {
    "password": """
        password passwort passwd passwrd passphrase pass~phrase passcode passord passordet pass~word kennwort securestring
        requirepass masterauth identified~by ^pwd$ ^pswd$ ^psw$ ^passw$ ^pw$ ^mdp$ mot~de~passe contraseña contrasenia
        palavra~passe ^senha wachtwoord lösenord lösenordet adgangskode adgangskoden kodeord salasana ^hasło ^haslo ^heslo$
        ^parola$ jelszó ^şifre$ ^şifresi$ ^sifre$ lozinka ^geslo$ kata~sandi kata~sandinya mật~khẩu slaptažodis
        пароль пароля паролю паролем пароли 密码 密碼 口令 パスワード 비밀번호 패스워드 암호 كلمة~المرور كلمة~مرور كلمة~السر
        סיסמה סיסמא סיסמת รหัสผ่าน पासवर्ड कूटशब्द κωδικός code~secret código~de~acceso código~secreto код~доступа
        passe~partout security~answer 合言葉 暗証番号 الرمز~السري
        """,
    "pass": "^pass$ ^clave$",
    "secret": """
        client~secret clientsecret secretstr secret$ secrets$ secret_ secret- secret. secretkey secretaccess geheimnis ^secreto$ ^segredo$
        ^2fa~seed$ ^mfa~seed$ ^otp~seed$ ^totp~seed$ секрет シークレット 秘密 秘密鍵 الرقم~السري गुप्त client~key~data$
        """,
    "token": """
        token authtoken _auth$ jeton$ токен токена токеном 令牌 トークン 토큰 टोकन توكن رمز~الوصول رمز~الدخول ^jwt$ ^bearer$ ^sas$ phpsessid jsessionid
        connect.sid sharedaccesssignature
        """,
    "key": """
        ^key$ apikey accountkey accesskey privatekey privkey sharedkey sharedaccesskey presharedkey ^psk$ schlüssel$ ^clé$
        ^chave$ ^chiave$ ^klucz$ ключ ключа ключом 密钥 密鑰 キー 키 ^llave$ कुंजी مفتاح المفتاح~السري
        """,
    "credentials": """
        credential$ credentials ^cred$ ^creds$ zugangsdaten logindaten anmeldedaten identifiants credenciales credenziais
        ^login$ ^auth$ ^log~in$ ^logged~in$ ^logging~in$ ^sign~in$ ^signed~in$ ^signing~in$
        """,
    "pin": """
        ^pin$ ^pin~code$ ^otp$ ^2fa~code ^mfa~code verification~code security~code recovery~code backup~code ^cvv$ ^cvc$ ^puk$
        access~code door~code unlock~code activation~code
        """,
}  # fmt: skip

# Commands with a cue in their name: COMMANDS has their arguments.
COMMAND_NAMES = _words("htpasswd chpasswd vncpasswd smbpasswd kpasswd ldappasswd mosquitto_passwd")

# A bare `key` is not a cue (dictionaries have keys): one of KEY_QUALIFIERS must come before it …
BARE_KEYS = _words("key schlussel cle chave chiave klucz llave ключ ключа ключом キー 키")
KEY_QUALIFIERS = _words("""
    api access secret private priv encryption encrypt encrypting decryption signing sign signature master auth
    authorization account app application service client license licence product activation admin deploy storage
    shared preshared pre session webhook integration ingest ingestion write read server consumer subscription host
    vault unseal root crypto cipher aes hmac jwt ssh gpg pgp wireguard data rsa live prod production staging sandbox
    dev test my our your new old user project team org workspace personal bot billing payment backup recovery
    symmetric wifi wlan hotspot guest router vpn aws amazon gcp google azure openai anthropic claude gemini stripe twilio sendgrid mailgun mailchimp
    github gitlab slack discord telegram datadog newrelic sentry grafana cloudflare fastly heroku netlify vercel
    supabase firebase algolia mapbox maps airtable notion linear figma okta auth0 shopify square paypal braintree
    plaid mistral cohere groq deepseek replicate perplexity huggingface pinecone langsmith openrouter together
    fireworks xai elevenlabs deepgram pagerduty opsgenie snyk sonar codecov circleci npm pypi docker digitalocean
    linode vultr hetzner confluent elastic mongodb atlas postmark resend brevo intercom zendesk hubspot segment
    mixpanel amplitude posthog geheimer privater api- secreta secrete privee""")

# … and none of these directly before it.
OTHER_KEYS = _words("""
    public primary foreign cache partition sort sorting unique group grouping row object dict map hash index lookup
    idempotency composite natural surrogate shard routing query json yaml each no any which every flag feature
    experiment toggle translation message locale registry keyboard shortcut arrow redis memcached s3 bucket kafka
    dynamodb etcd
    first last same missing""")

# Tokens that open nothing, by the word before them: they turn pages, mark the ends of texts, or make calls idempotent.
OTHER_TOKENS = _words(
    "next page pagination continuation idempotency cursor eos bos pad unk sep stop start end lookahead pull"
)

# Suffixes of a cue that leave its meaning alone: DB_PASSWORD_PROD, apiKeyValue.
NEUTRAL_SUFFIXES = _words("""
    value val string str raw plain plaintext text clear cleartext default prod production live test testing staging
    stage stg dev local old new current previous prev next primary secondary main backup base b64 base64 encoded enc
    admin root user db s hex bytes""")
# Suffixes of a cue that make the identifier name something else than a secret: password_policy.
BENIGN_SUFFIXES = _words("""
    policy policies length len size count counts limit limits budget min max minimum maximum ttl expiry expires
    expired expiration expire age timeout lifetime interval duration rotation strength score rules rule hash hashes
    hashed hasher hashing sha sha1 sha256 sha512 md5 checksum digest fingerprint thumbprint id ids name names url
    uri urls endpoint path paths file files filename dir directory folder type types kind format version header
    headers field fields param params parameter argument prefix suffix regex pattern index idx position offset usage
    label title hint help prompt message messages msg error errors exception required enabled disabled env var
    variable store storage manager provider class cls func function factory builder validator validation input
    output placeholder arn region ref refs reference resource selector list map dict set cache helper util utils
    service client reset change changed update updated forgot confirm confirmation verify verification check checker
    callback handler mode algorithm alg algo cipher stream iterator generator parser lexer kwargs args getter setter
    command cmd column table schema model view form page screen button icon link route controller event events
    source visible visibility toggle show hidden tooltip description docs doc note notes example examples per price
    cost costs rate json yaml yml toml txt md py js ts go rs java rb sh html css pem crt csv log bucket mount volume
    issuer audience scope scopes owner holder address contract symbol decimals supply at by on in of for to is has
    was the and or""")

# Between a cue and its value in prose: forms of "to be" and the small words around them, folded, in the languages
# that CUES speaks. A run of up to six of these links a cue to the value that follows it.
LINKS = _words("""
    is was are were be been being has have had will would should shall must can may might became become becomes
    remains remain stays equals equal reads means now still currently just simply only probably actually literally
    temporarily set reset changed updated rotated to as follows following the this that here value string
    it's its it again always exactly ist war sind waren wird wurde lautet lauten sei heisst heißt jetzt nun noch
    aktuell auf gesetzt geandert und hier est sont etait sera devient maintenant toujours defini sur voici le la es
    son era sigue siendo ahora aqui e sao foi agora continua ainda sono adesso zijn wordt werd nu ar blev er var
    blir nyt on jest sa byl bylo bude je byla bu simdi olarak это является теперь был сейчас такой вот adalah bang
    with using into wäre serait seria ware هي هو है""")
VERBS = _words("""
    is was are be equals reads changed rotated ist war lautet lauten sei heisst heißt est sera es era e ar er jest
    to je on это является adalah ware wäre serait seria هي هو""")
LINKS_UNSPACED = _words("是 为 為 就是 改为 改成 設定為 设置为 は が を 는 은 이 가 를 을")

# Words that may open a phrase between the cue and its link: "password *for* the staging box is …".
GAP_OPENERS = _words("""
    for of on to in at from by with i we you they he she that which who used using behind inside value fur der des
    von vom zum zur im am auf bei aus de del du d'acces para pour por no na do da dos das di della dello per sul van
    voor op til till pa av dla z для от к на из у new old current nueva nuevo nova novo nouveau nouvelle nuova nuovo
    neue neues moi baru""")

# Nouns between a cue and a late link that take the value for themselves: "the secret leaked, the commit is …".
ATTRIBUTES = _words("""
    id ids name names uid uuid commit revision rev sha hash digest checksum fingerprint branch tag build release version
    length size count ratio limit ttl expiry age timeout type format prefix suffix url uri endpoint path index header
    algorithm arn region port date time ticket issue error code status reason job run pod trace row line page""")

# How the verbs begin that replace one secret by another: "the password changed from … to …".
CHANGES = ("chang", "rotat", "updat", "switch", "mov", "replac", "reset", "went", "geander", "gewechsel", "ersetz")

# Plain words that follow "password is" or "password:" in ordinary text and code and are not passwords.
PLAIN_WORDS = _words("""
    a about above accepted access active added admin again all allowed alone also always an and any anyone anything
    applied are arg args argument as asked at attribute auto autocomplete available away back bad bare based because
    been before below best blank bool boolean both broken bytes cached called can cannot case change changed char
    chars check class clear client code column common compared complex compromised config configured confirm console
    copied correct could credentials current data database db decrypted default defined deprecated derived detected
    different digest disabled dict does done double dummy each easy either element else empty en encoded encrypted
    enough entered entropy entry environment equal error even ever every everywhere exactly example exists expected
    expired expires exposed external false field file fine first flag for form format forgotten found from full
    function generated get getpass given global going gone good group guess hard hash hashed have he header hello
    here hidden hint how i id identical if ignored in incorrect input inside instead int integer into invalid is
    issued it item itself json just kept key keyring known label last later leaked left legacy less like line local
    locked login logged long lost low made managed mandatory manual masked match matched matching maybe me mine min
    minimum missing mixed more most much must my name necessary needed never new next nil no none normal not nothing
    now null number object obj obsolete of off ok okay old on once one only open option optional or other otherwise
    our out output over own param parameter parsed part passed password passwd passphrase path pending per perfect
    personal plain plaintext please policy present printed private prompt prompted property protected provided
    public pw pwd quoted random raw read ready really redacted rejected removed required res reset result ret
    returned revoked right rotated row safe salted same saved scope secret secure security self sensitive sent
    server set sha shared short should shown simple since so some something somewhere static still stored str strict
    string strings strong stronger such symbol taken temp temporary test text that the their them then there these
    they thing this to too token tokens tried trimmed true try two txt type unchanged undefined unencrypted unique
    unknown unset unused up update updated upper url used useless user username usual valid value var variable
    varchar variant verified version very via void vulnerable was we weak what when where which who why will with
    within without word wrong yaml yes yet you your zero und oder nicht falsch richtig leer geheim sicher unsicher
    abgelaufen hier noch dort bekannt vide faux expire correcto incorrecta incorrecto vacia incorreta vazia errata
    vuota options flags arguments parameters values fields setting settings switch manager generator hints rules
    requirements ungultig notwendig vergessen oublie requis requise obligatoire incorrecte invalide obligatoria
    obligatorio requerida necesaria olvidada correcta secreta obrigatoria necessaria richiesta obbligatoria
    sbagliata verplicht onjuist leeg fel tomt wymagane puste hache chiffre stocke genere perime change modifie
    absent already perhaps later earlier abusable accessible adequate almost along ambient anonymous another atomic automatic awful basic bcrypt
    became because beyond borrowed cheap clean cleartext common complete completely confidential consistent constant
    corrupt critical crucial dead difficult digital directly dynamic ephemeral essential explicit extra fake fast few
    final finally foreign fresh further generic gibberish gitignored hardcoded harmless https huge human identical
    implicit important inherit initial insecure instead intact internal irrelevant just large less likely limited
    literal live longer loose lower many meant merely minimal moot mounted naive neither nested noise nowhere often
    opaque original otherwise outdated outside painful pointless poor possible predictable pretty private probably
    problem public purely question quite rarely rather recent redundant refused relevant reliable restricted rotten
    scrypt seldom separate several signed simply single small solid soon special specific specified stale stolen
    suspicious symmetric technically terrible than too transient transparent trivial truncated typical unclear
    undocumented unguessable universal unlikely unnecessary unreadable unsafe unsigned usually visible wanted
    whatever worth wrongly yours lambda show copy hide reveal edit view create generate regenerate refresh submit
    cancel continue click choose oauth html nginx kubernetes localhost webhook""")
# Endings that mark an English word as describing the secret rather than being it.
DESCRIPTIVE_ENDINGS = ("ed", "ing", "ly", "able", "ible", "ive", "ous", "ful", "less", "ment", "tion", "sion", "ity",
                       "ance", "ence", "ical", "ized", "ised", "ist", "isch", "lich")  # fmt: skip

# Endings of participles and adjectives in the other languages: they count behind a cue or a link of one of these.
FOREIGN_ENDINGS = ("lich", "isch", "iert", "ungen", "bar", "ig", "ado", "ada", "ido", "ida", "ato", "ata", "uto", "uta",
                   "ivo", "iva", "oso", "osa", "oire", "aire", "ique", "able", "ible", "icht", "aufen", "oren", "open",
                   "ssen", "eld", "aan")  # fmt: skip
FOREIGN_LINKS = _words("ist war lautet wird wurde est etait es era e foi sono zijn wordt")
ENGLISH_CUES = _words("password passwd passphrase passcode pass pwd pw psk secret token key login cred auth jwt pin")

# Words without a meaning of their own, and words that speak about a secret: a quoted text with one of the second, or
# mostly of the first, is a sentence and not a passphrase.
FUNCTION_WORDS = _words("""
    a an the is are was were be been to of in on at by for with from my our their this that these those it its not no
    or and if when can will would may as via into per so then than has have had do does did here there how what which
    who until while""")
DETERMINERS = _words("any all each every both some your")
ABOUT_WORDS = _words("""
    your you must should cannot please enter type use using used need needs required invalid incorrect wrong missing
    least most more characters character password passwords passphrase token tokens secret secrets key keys
    credentials field value user username account login forgot reset change confirm only optional between""")

# Placeholders: a value that is one of these, or has one as a word, is not a secret …
PLACEHOLDER_WORDS = _words("""
    your yours yourself example examples placeholder redacted dummy changeme changeit replaceme todo tbd fixme xxx
    xxxx xxxxx foobar foo qux none null nil undefined omitted censored elided""")
# … and these are placeholders where at least half of the words are.
VAGUE_PLACEHOLDERS = _words("sample replace insert here goes bar baz masked hidden removed snip")
FILLER_WORDS = _words("""
    my the a an some this that api key keys token tokens secret secrets password passwd pass pwd pw passphrase
    credential credentials auth access private client app user username db database admin test fake mock value
    string id name code bearer jwt service account prod dev staging env var variable new old real actual super very
    long random type header param field text data generated session cookie csrf xsrf refresh oauth github openai aws
    google""")

# Calls around a string that make a value of it; the string in another call is an argument: `push("code", 1)`.
MAKERS = _words("from str string bytes new secretstr secret b64decode b64encode fromhex encode text value of")

# Nouns that end the name of a secret: `app-db-credentials`, `X-Auth-Token`.
SECRET_NOUNS = _words(
    "password passwd token tokens secret secrets credential credentials creds apikey key keys pass tls ssl"
)

# The last word of a type's name: `SecretStr`, `AccessToken`, `PasswordField`.
TYPE_WORDS = _words("""
    str string strings bytes byte bytearray buffer char chars varchar text blob int integer number float double
    decimal bool boolean any object dict list array map set tuple optional union literal none null undefined type
    types model field value values enum unknown never void uuid record struct class interface callable iterable
    iterator sequence mapping node stream reader writer handler provider factory manager client config settings
    options option error exception response request context session source ref reference spec info data kind state
    result builder validator store service holder wrapper input output param params parameter argument arg pair view
    form widget column token tokens key keys secret secrets password passwords credential credentials auth
    authenticator principal claims payload header cookie sha hash digest signature""")

# Words of design systems: `color-primary-500` is a design token, and opens nothing.
DESIGN_WORDS = _words("""
    color colors colour spacing space gap font text typography heading body radius rounded shadow elevation surface
    background bg foreground fg border outline brand accent primary secondary tertiary neutral muted subtle motion
    duration easing opacity index modal overlay size sizing breakpoint layout grid icon button link xs sm md lg xl xxl palette theme ink""")

# Words that may stand before the name of a variable where it is assigned.
DECLARATORS = _words("let const var val final static readonly mut")
MORE_DECLARATORS = _words("""
    public private protected internal auto string str char int bool byte bytes void export global local declare
    return async await lazy override""")  # prose has these as well, so they count before `=` only

# The letters that may follow each letter in the words of the languages above; random letters have other pairs.
FOLLOWERS: dict[str, str] = dict(
    line.split()
    for line in """
        a bcdfghijklmnprstuvwxyz
        b abcdeijlmorstuvy
        c acehiklorstuy
        d adegiljmnorsuvwy
        e abcdefghijklmnopqrstuvwxyz
        f aefilorstuy
        g aeghilmnorstuy
        h aeilmnortuwy
        i abcdefgiklmnoprstvxz
        j aeou
        k aeilnorsuy
        l abdefiklmopstuvy
        m abeilmopsuy
        n abcdefghijklmnoprstuvwyz
        o abcdefghijklmnoprstuvwxyz
        p adehiloprstuy
        q u
        r abcdefgiklmnoprstuvwy
        s acefhiklmnopqrstuwy
        t acdefhiloprstuwyz
        u abcdefgilmnoprstxz
        v aeioy
        w aehiklnors
        x acehipty
        y abceilmnoprstw
        z aeiluyz
    """.strip().splitlines()
)

# Things with digits in them that are names, not secrets.
TERMS = _words("""
    sha1 sha2 sha3 sha224 sha256 sha384 sha512 md4 md5 crc32 blake2 blake2b blake2s blake3 oauth1 oauth2 http1 http2
    http3 h2 base16 base32 base58 base62 base64 base64url base85 ascii85 utf8 utf16 utf32 latin1 iso8859 ipv4 ipv6
    k8s i18n l10n a11y ec2 s3 r2 d1 b2 x509 x25519 ed25519 ed448 p256 p384 secp256k1 secp256r1 rs256 rs384 rs512
    hs256 hs384 hs512 es256 es384 es512 ps256 a128gcm a256gcm aes128 aes192 aes256 rsa2048 rsa4096 argon2 argon2i
    argon2id argon2d pbkdf2 bcrypt2 scrypt2 python2 python3 py3 node18 node20 gpt2 gpt3 gpt4 gpt5 o1 o3 erc20 erc721
    erc1155 bip32 bip39 bip44 totp2 fido2 u2f web2 web3 v1 v2 v3 v4 tls1 tls12 tls13 ssl2 ssl3 win32 win64 x86 x64
    arm64 amd64 mp3 mp4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 i32 i64 u8 u32 u64
    f32 f64 char1 postgres14 postgres15 postgres16 mysql5 mysql8 neo4j log4j 1password 2fa mfa2 auth0 b64 level1
    level2 step1 step2 phase1 phase2 test1 test2 pass1 pass2 password1 password2 passwd2 pwd1 pwd2 token1 token2
    secret1 secret2 key1 key2 user1 user2 arg1 arg2 var1 var2 item1 item2 foo1 foo2""")

# Endings of file and host names.
NAME_ENDINGS = _words("""
    py js ts tsx jsx json yaml yml toml txt md env pem key crt cfg ini conf log go rs java rb sh html css xml sql csv
    lock local internal com org net io dev test example""")

# Commands that take a secret by position or flag, grouped by a sign that all of the group contain ("": none). Each: the
# words that may begin it, in lower case, and the pattern after them, where case counts: -p is not -P. The three dots
# are `net` itself: ".NET user secrets", "internet user accounts" and "the net user count" are prose.
HTPASSWD_FLAGS = r"(?:[ \t]{1,4}+-\w{1,8}+(?:[ \t]{1,4}+[0-9]{1,2}+(?=[ \t]))?){1,6}+"
COMMANDS: dict[str, tuple[tuple[str, str], ...]] = {
    "-": (
        ("curl", r"""\b[^\n]{0,400}?\s(?:-u|--user|--proxy-user|-U)(?:=|[ \t]{0,4}+)["']?[^\s:"'$]{0,64}+:["']?+([^\s"']{3,128}+)"""),
        ("--auth", r"""(?<=\s--auth)(?:=|[ \t]{1,4}+)["']?[^\s:"'$]{1,64}+:["']?+([^\s"']{3,128}+)"""),
        ("http https", r"""[ \t][^\n]{0,200}?-a\s{1,4}+["']?[^\s:"'$]{1,64}+:["']?+([^\s"']{3,128}+)"""),
        ("mysql", r"""\w{0,8}+\b[^\n|;]{0,200}?\s-p["']?([^\s"'-][^\s"']{2,128}+)"""),
        ("mariadb", r"""[\w-]{0,8}+\b[^\n|;]{0,200}?\s-p["']?([^\s"'-][^\s"']{2,128}+)"""),
        ("sshpass", r"""\s{1,4}+-p\s{0,4}+["']?([^\s"']{3,128}+)"""),
        ("redis-cli", r"""\b[^\n|;]{0,200}?\s-a\s{1,4}+["']?([^\s"']{3,128}+)"""),
        ("sqlcmd bcp mosquitto_pub mosquitto_sub mosquitto_rr", r"""\b[^\n|;]{0,200}?\s-P[ \t]{0,4}+["']?([^\s"'-][^\s"']{2,128}+)"""),
        ("cqlsh cypher-shell snowsql rabbitmqadmin rdesktop evil-winrm", r"""\b[^\n|;]{0,200}?\s-p[ \t]{0,4}+["']?([^\s"'-][^\s"']{2,128}+)"""),
        ("plink pscp psftp", r"""\b[^\n|;]{0,200}?\s-pw[ \t]{1,4}+["']?([^\s"'-][^\s"']{2,128}+)"""),
        ("lftp", r"""\b[^\n|;]{0,200}?-u[ \t]{0,4}+["']?[^\s,"']{1,64}+,([^\s"']{3,128}+)"""),
        ("rar", r"""[ \t]{1,4}+[a-z]{1,2}+\b[^\n|;]{0,80}?\s-(?:hp|p)["']?([^\s"'-][^\s"']{2,128}+)"""),
        ("mongo", r"""\w{0,8}+\b[^\n|;]{0,200}?\s-p(?:=|[ \t]{0,4}+)["']?(?![0-9]{1,5}+:[0-9])([^\s"'-][^\s"']{2,128}+)"""),
        ("ldap", r"""\w{1,10}+\b[^\n|;]{0,300}?\s-w\s{1,4}+["']?([^\s"']{3,128}+)"""),
        ("zip", r"""\b[^\n|;]{0,80}?\s-P\s{1,4}+["']?([^\s"']{3,128}+)"""),
        ("7z", r"""[A-Za-z]{0,2}+\b[^\n|;]{0,80}?\s-p["']?([^\s"']{3,128}+)"""),
        ("openssl", r"""\b[^\n|;]{0,200}?\s-(?:k|password)\s{1,4}+["']?(?!pass:|env:|file:|stdin)([^\s"']{3,128}+)"""),
        ("smbclient", r"""\b[^\n|;]{0,200}?\s-U\s{0,4}+["']?[^\s%"']{1,64}+%([^\s"']{3,128}+)"""),
        ("htpasswd", rf"""(?=[^\n]{{0,80}}?\s-\w{{0,8}}b)(?![^\n]{{0,80}}?\s-\w{{0,8}}n){HTPASSWD_FLAGS}[ \t]{{1,4}}+[^\s-]\S{{0,100}}+[ \t]{{1,4}}+\S{{1,64}}+[ \t]{{1,4}}+["']?([^\s"'`-][^\s"'`]{{2,128}}+)"""),
        ("htpasswd", rf"""(?=[^\n]{{0,80}}?\s-\w{{0,8}}b)(?=[^\n]{{0,80}}?\s-\w{{0,8}}n){HTPASSWD_FLAGS}[ \t]{{1,4}}+[^\s-]\S{{0,64}}+[ \t]{{1,4}}+["']?([^\s"'`-][^\s"'`]{{2,128}}+)"""),
        ("--from-literal", r"""(?:=|[ \t]{1,4}+)["']?[\w.-]{1,80}+=["']?([^\s"']{3,512}+)"""),
        ("-storepass", r"""(?<=\s-storepass)\s{1,4}+["']?([^\s"']{3,128}+)"""),
        ("-keypass", r"""(?<=\s-keypass)\s{1,4}+["']?([^\s"']{3,128}+)"""),
    ),
    "-b": (
        ("curl", r"""\b[^\n]{0,400}?\s-b[ \t]{0,4}+["']?[\w.-]{1,80}+=([^\s"']{6,2048}+)"""),
    ),
    "login": (
        ("docker podman helm nerdctl buildah skopeo crane az oc cf", r"""[ \t]{1,4}+(?:registry[ \t]{1,4}+)?login\b[^\n|;]{0,100}?\s-p(?:=|[ \t]{0,4}+)["']?([^\s"'-][^\s"']{2,128}+)"""),
        ("vault", r"""[ \t]{1,4}+login[ \t]{1,4}+(?!-)["']?([^\s"'$=]{8,200}+)"""),
    ),
    "pass:": (
        ("-passin -passout -pass -k", r"""\s{1,4}+["']?pass:([^\s"']{3,128}+)"""),
    ),
    "|": (
        ("echo", r"""\s{1,4}+(?:-\w\s{1,4}+)?["']?([^\s"']{3,512}+)["']?\s{0,4}+\|[^\n]{0,120}?--password-stdin"""),
        ("echo", r"""\s{1,4}+(?:-\w\s{1,4}+)?["']?[\w.-]{1,64}+:([^\s"']{3,128}+)["']?\s{0,4}+\|\s{0,4}+(?:sudo\s{1,4}+)?chpasswd"""),
        ("echo", r"""\s{1,4}+(?:-\w\s{1,4}+)?["']?([^\s"']{3,128}+)["']?\s{0,4}+\|\s{0,4}+sudo\s{1,4}+(?:-\w{1,4}+\s{1,4}+){0,3}?-S"""),
    ),
    "\\": (
        ("net", r"""[ \t]{1,4}+(?i:use)[ \t]{1,4}+(?:\w:[ \t]{1,4}+|\*[ \t]{1,4}+)?\\\\\S{1,200}+[ \t]{1,4}+["']?([^\s"'/][^\s"']{2,128}+)[ \t]{1,4}+/(?i:user):"""),
    ),
    "/": (
        ("xfreerdp wfreerdp sdl-freerdp", r"""\b[^\n|;]{0,200}?\s/p:["']?+([^\s"']{3,128}+)"""),
        ("schtasks", r"""\b[^\n|;]{0,200}?\s/(?i:rp)[ \t]{1,4}+["']?([^\s"'/][^\s"']{2,128}+)"""),
        ("sqlplus expdp impdp", r"""[ \t]{1,4}+(?:-\w{1,8}+[ \t]{1,4}+){0,3}?["']?[\w$#.-]{1,64}+/(?!/)([^\s"'@/]{3,128}+)(?=@)"""),
        ("mc", r"""(?<![\w.]..)[ \t]{1,4}+(?:alias[ \t]{1,4}+set|config[ \t]{1,4}+host[ \t]{1,4}+add)[ \t]{1,4}+\S{1,64}+[ \t]{1,4}+https?://\S{1,200}+[ \t]{1,4}+\S{1,128}+[ \t]{1,4}+["']?([^\s"']{3,128}+)"""),
        ("net", r"""[ \t]{1,4}+(?i:use)\b[^\n]{0,120}?/(?i:user):\S{1,64}+\s{1,4}+["']?([^\s"'/][^\s"']{2,128}+)"""),
    ),
    "<<<": (
        ("vncpasswd chpasswd", r"""\b[^\n]{0,80}?<<<[ \t]{0,4}+["']?([^\s"']{3,128}+)"""),
    ),
    "_": (
        ("wpa_passphrase", r"""[ \t]{1,4}+["']?[^\s"']{1,64}+["']?[ \t]{1,4}+["']?([^\s"']{8,63}+)"""),
        ("rabbitmqctl", r"""[ \t]{1,4}+(?:-\w{1,8}+[ \t]{1,4}+\S{1,64}+[ \t]{1,4}+)?(?:add_user|change_password|authenticate_user)[ \t]{1,4}+\S{1,64}+[ \t]{1,4}+["']?([^\s"']{3,128}+)"""),
    ),
    "": (
        ("net", r"""(?<![\w.]...)(?<!\bthe\s...)[ \t]{1,4}+(?i:user)[ \t]{1,4}+[\w.-]{1,40}+[ \t]{1,4}+["']?([^\s"'/][^\s"']{2,128}+)"""),
    ),
}  # fmt: skip

# Names of cookies that open a session, in part: others (theme, lang) count only if their value looks like a secret.
COOKIE_ATTRIBUTES = _words("samesite path domain expires max-age httponly secure partitioned priority")
SESSION_COOKIES = ("sess", "sid", "auth", "token", "jwt", "login", "csrf", "xsrf", "remember", "identity")

# Cues of a seed phrase (folded), and frequent words that no wallet's list holds.
SEED_SIGNS = (
    "phrase",
    "mnemonic",
    "seed",
    "bip39",
    "bip-39",
    "wallet",
    "frase",
    "semilla",
    "фраза",
    "ニーモニック",
    "助记词",
)
SEED_CUES = (
    r"(?:seed|recovery|backup|secret|wallet)[ _-]?(?:phrase|words?)|mnemonic(?:[ _-]phrase)?|\bseed\b|\bbip-?39\b"
    r"|wiederherstellungsphrase|phrase de recuperation|frase (?:semilla|de recuperacion|secreta)"
    r"|(?:сид|секретная|мнемоническая)[ -]фраза|ニーモニック|助记词"
)
SEED_STRANGERS = _words("""
    the and for are from your with was were has had but its our which when into been they their them these those
    also than because should would could must does did don""")

# Payment cards: by their length, the ranges of first digits that issuers use (Visa, Mastercard, Amex, Diners, JCB,
# Discover, UnionPay).
CARDS: dict[int, tuple[tuple[str, str], ...]] = {
    14: (("36", "36"), ("38", "38"), ("300", "305")),
    15: (("34", "34"), ("37", "37")),
    16: (("4", "4"), ("51", "55"), ("2221", "2720"), ("3528", "3589"), ("62", "62"), ("65", "65"), ("6011", "6011"),
         ("644", "649")),
    19: (("62", "62"), ("65", "65")),
}  # fmt: skip
