"""Tables of English in the form that an index holds.

Written by docs/stems.py. Change ../english.py, then run `python docs/stems.py`.
"""


def _table(entries: str) -> dict[str, str]:
    return dict(entry.split(": ") for entry in entries.strip().replace("\n", " | ").split(" | "))


# Words about the asking.
ASIDES = frozenset(
    """
    again ago back chat confirm convers current day differ earliest exampl first follow go last late latest look mention
    month name number order pass past plan previous provid recent recommend rememb remind specif suggest think through
    time total tri up week wonder year
    """.split()
)

# Words that say when.
TIME_WORDS = frozenset(
    """
    afternoon ago april august autumn christma day decemb evening februari friday januari juli june last march monday
    month morn next night novemb octob recent saturday septemb sinc soon spring summer sunday thursday today tomorrow
    tonight tuesday wednesday week weekend winter year yesterday
    """.split()
)

# Words that say how many.
NUMBER_WORDS = frozenset(
    """
    both coupl dozen eight eleven first five four half hundr nine onc one second seven sever six ten third thirti three
    twelv twenti twice two
    """.split()
)

# Word → other forms of it.
FORMS = _table(
    """
ate: eat eaten | bad: wors worst | bake: baker bakeri | baker: bake bakeri | bakeri: bake baker | becam: becom
becom: becam | began: begin begun | begin: began begun | begun: began begin | best: better good | better: best good
bought: buy | break: broke broken | bring: brought | broke: break broken | broken: break broke | brought: bring
build: built | built: build | buy: bought | came: come | catch: caught | caught: catch | child: childr kid
childr: child kid | choic: choos chose chosen | choos: choic chose chosen | chose: choic choos chosen
chosen: choic choos chose | come: came | dead: death die | death: dead die | die: dead death | drank: drink drunk
draw: drawn drew | drawn: draw drew | drew: draw drawn | drink: drank drunk | drive: driven drove | driven: drive drove
drove: drive driven | drunk: drank drink | eat: ate eaten | eaten: ate eat | fall: fallen fell | fallen: fall fell
fed: feed | feed: fed | feel: felt | feet: foot | fell: fall fallen | felt: feel | fight: fought | find: found
flew: fli flight flown | fli: flew flight flown | flight: flew fli flown | flown: flew fli flight | foot: feet
forget: forgot forgott | forgot: forget forgott | forgott: forget forgot | fought: fight | found: find
gave: give given | get: got gotten | give: gave given | given: gave give | go: gone went | gone: go went
good: best better | got: get gotten | gotten: get got | grew: grow grown | grow: grew grown | grown: grew grow
hear: heard | heard: hear | held: hold | hid: hidden hide | hidden: hid hide | hide: hid hidden | hold: held
keep: kept | kept: keep | kid: child childr | knew: know known | know: knew known | known: knew know | lead: led
leav: left | led: lead | left: leav | lend: lent | lent: lend | life: live | live: life | lose: loss lost
loss: lose lost | lost: lose loss | made: make | make: made | man: men | marri: marriag wed | marriag: marri wed
meet: met | men: man | met: meet | mice: mous | mous: mice | paid: pay payment | pay: paid payment | payment: paid pay
ran: run | ridden: ride rode | ride: ridden rode | rode: ridden ride | run: ran | said: say | sale: sell sold
sang: sing song sung | sat: sit | saw: see seen | say: said | see: saw seen | seek: sought | seen: saw see
sell: sale sold | send: sent | sent: send | shoot: shot | shot: shoot | show: shown | shown: show | sing: sang song sung
sit: sat | sleep: slept | slept: sleep | sold: sale sell | song: sang sing sung | sought: seek
speak: speech spoke spoken | speech: speak spoke spoken | spend: spent | spent: spend | spoke: speak speech spoken
spoken: speak speech spoke | stand: stood | steal: stole stolen | stole: steal stolen | stolen: steal stole
stood: stand | sung: sang sing song | swam: swim swum | swim: swam swum | swum: swam swim | take: taken took
taken: take took | taught: teach | teach: taught | teeth: tooth | tell: told | think: thought | thought: think
threw: throw thrown | throw: threw thrown | thrown: threw throw | told: tell | took: take taken | tooth: teeth
understand: understood | understood: understand | wake: woke woken | wear: wore worn | wed: marri marriag
went: go gone | wife: wive | win: won | wive: wife | woke: wake woken | woken: wake woke | woman: women | women: woman
won: win | wore: wear worn | worn: wear wore | wors: bad worst | worst: bad wors | write: writt wrote
writt: write wrote | wrote: write writt
"""
)

# Word → words that may stand for it.
RELATED = _table(
    """
abroad: countri nation | accomplish: achiev proud | achiev: accomplish proud | acquir: buy order purchas
advic: recommend suggest | afraid: fear scare | ancient: old vintag | angri: frustrat mad
anniversari: birthday celebr parti | anxieti: stress worri | apart: home hous | appoint: meet | art: artwork paint
artist: painter | artwork: art paint | assist: help support volunt | aunt: cousin famili relat uncl
author: write writer | award: prize trophi | babi: child daughter kid son toddler | band: musician singer
beach: ocean sea | beer: coffe drink tea wine | begin: launch start | belief: church faith religion spiritu
believ: opinion think | big: huge larg | birth: born | birthday: anniversari celebr parti | book: novel read
born: birth | boutiqu: shop store | boyfriend: date girlfriend partner relationship singl | brand: model
breakfast: dinner eat food lunch meal | brother: sibl sister | buddi: friend pal | build: construct creat make
busi: compani firm startup | buy: acquir order purchas | cake: cooki dessert pie | call: name nicknam | calm: peac relax
camera: imag photo photograph pictur | car: drive vehicl | career: employ job occup profess work
cat: dog kitten pet puppi | celebr: anniversari birthday parti | challeng: difficult hard struggl
championship: competit contest tournament | chang: transform transit | chariti: donat fundrais
chat: convers discuss talk | cheap: deal discount sale | child: babi daughter kid son toddler | childhood: kid young
choos: decid decis | church: belief faith religion spiritu | cinema: film movi | citi: town
class: cours learn lesson studi | clinic: doctor hospit physician | club: squad team | coach: instructor teach teacher
coffe: beer drink tea wine | colleg: degre educ school universiti | compani: busi firm startup
competit: championship contest tournament | complet: end finish | comput: laptop pc | concert: gig perform show stage
confer: event workshop | construct: build creat make | contest: championship competit tournament
convers: chat discuss talk | cook: dish recip | cooki: cake dessert pie | cost: dollar money pay price
countri: abroad nation | cours: class learn lesson studi | cousin: aunt famili relat uncl | creat: build construct make
dad: father mom mother parent | date: boyfriend girlfriend partner relationship singl
daughter: babi child kid son toddler | deal: cheap discount sale | death: funer | decid: choos decis
decis: choos decid | degre: colleg educ school universiti | depress: sad upset | dessert: cake cooki pie
difficult: challeng hard struggl | dinner: breakfast eat food lunch meal | discount: cheap deal sale
discuss: chat convers talk | diseas: health ill sick | dish: cook recip | dislik: hate | doctor: clinic hospit physician
dog: cat kitten pet pup puppi | dollar: cost money pay price | donat: chariti fundrais | dream: goal hope wish
drink: beer coffe tea wine | drive: car vehicl | eat: breakfast dinner food lunch meal
educ: colleg degre school universiti | employ: career job occup profess work | encount: introduc meet
end: complet finish | enjoy: fan favorit like love | event: confer workshop | excit: happi joy thrill
exercis: fit gym workout | exhaust: stress tire | faith: belief church religion spiritu | famili: aunt cousin relat uncl
fan: enjoy favorit like love | father: dad mom mother parent | favorit: enjoy fan like love | fear: afraid scare
film: cinema movi | finish: complet end | firm: busi compani startup | fit: exercis gym workout | fix: repair
flower: garden plant | food: breakfast dinner eat lunch meal | forest: natur wood | friend: buddi pal
frustrat: angri mad | fundrais: chariti donat | funer: death | game: play | garden: flower plant
getaway: holiday journey travel trip vacat visit | gift: present | gig: concert perform show stage
girlfriend: boyfriend date partner relationship singl | go: intend plan want | goal: dream hope wish
grandfath: grandma grandmoth grandpa grandpar | grandma: grandfath grandmoth grandpa grandpar
grandmoth: grandfath grandma grandpa grandpar | grandpa: grandfath grandma grandmoth grandpar
grandpar: grandfath grandma grandmoth grandpa | group: nonprofit organiz | gym: exercis fit workout
happi: excit joy thrill | hard: challeng difficult struggl | hate: dislik | health: diseas ill sick
help: assist support volunt | hike: trail trek | hill: mountain peak | hobbi: interest passion
holiday: getaway journey travel trip vacat visit | home: apart hous | hope: dream goal wish
hospit: clinic doctor physician | hous: apart home | huge: big larg | hurt: injur injuri pain
husband: marri partner spous wife | ill: diseas health sick | imag: camera photo photograph pictur
injur: hurt injuri pain | injuri: hurt injur pain | inspir: motiv | instructor: coach teach teacher
intend: go plan want | interest: hobbi passion | internet: onlin websit | introduc: encount meet | issu: problem troubl
job: career employ occup profess work | jog: marathon race run | journey: getaway holiday travel trip vacat visit
joy: excit happi thrill | kid: babi child childhood daughter son toddler young | kitten: cat dog pet puppi | lake: river
laptop: comput pc | larg: big huge | launch: begin start | learn: class cours lesson studi | leav: quit resign
lesson: class cours learn studi | like: enjoy fan favorit love | littl: small tini | live: resid
love: enjoy fan favorit like | lunch: breakfast dinner eat food meal | mad: angri frustrat | make: build construct creat
marathon: jog race run | marri: husband partner spous wife | meal: breakfast dinner eat food lunch
meet: appoint encount introduc | mention: say tell | mobil: phone smartphon | model: brand
mom: dad father mother mum parent | money: cost dollar pay price | mother: dad father mom mum parent | motiv: inspir
mountain: hill peak | move: reloc | movi: cinema film | mum: mom mother | music: song track | musician: band singer
name: call nicknam | nation: abroad countri | natur: forest wood | new: recent | nicknam: call name
nonprofit: group organiz | novel: book read | occup: career employ job profess work | ocean: beach sea
old: ancient vintag | onlin: internet websit | opinion: believ think | order: acquir buy purchas
organiz: group nonprofit | pain: hurt injur injuri | paint: art artwork | painter: artist | pal: buddi friend
parent: dad father mom mother | parti: anniversari birthday celebr
partner: boyfriend date girlfriend husband marri relationship singl spous wife | passion: hobbi interest
pay: cost dollar money price | pc: comput laptop | peac: calm relax | peak: hill mountain
perform: concert gig show stage | pet: cat dog kitten puppi | phone: mobil smartphon
photo: camera imag photograph pictur | photograph: camera imag photo pictur | physician: clinic doctor hospit
pictur: camera imag photo photograph | pie: cake cooki dessert | plan: go intend want | plant: flower garden
play: game | present: gift | price: cost dollar money pay | prize: award trophi | problem: issu troubl
profess: career employ job occup work | proud: accomplish achiev | pup: dog puppi | puppi: cat dog kitten pet pup
purchas: acquir buy order | quit: leav resign | race: jog marathon run | read: book novel | recent: new
recip: cook dish | recommend: advic suggest | relat: aunt cousin famili uncl
relationship: boyfriend date girlfriend partner singl | relax: calm peac | religion: belief church faith spiritu
reloc: move | repair: fix | resid: live | resign: leav quit | river: lake | run: jog marathon race | sad: depress upset
sale: cheap deal discount | say: mention tell | scare: afraid fear | school: colleg degre educ universiti
sea: beach ocean | shop: boutiqu store | show: concert gig perform stage | sibl: brother sister
sick: diseas health ill | singer: band musician | singl: boyfriend date girlfriend partner relationship
sister: brother sibl | skill: talent | small: littl tini | smartphon: mobil phone | son: babi child daughter kid toddler
song: music track | spiritu: belief church faith religion | spous: husband marri partner wife | squad: club team
stage: concert gig perform show | start: begin launch | startup: busi compani firm | store: boutiqu shop
stress: anxieti exhaust tire worri | struggl: challeng difficult hard | studi: class cours learn lesson
suggest: advic recommend | support: assist help volunt | talent: skill | talk: chat convers discuss
tea: beer coffe drink wine | teach: coach instructor teacher | teacher: coach instructor teach | team: club squad
tell: mention say | think: believ opinion | thrill: excit happi joy | tini: littl small | tire: exhaust stress
toddler: babi child daughter kid son | tournament: championship competit contest | town: citi | track: music song
trail: hike trek | transform: chang transit | transit: chang transform
travel: getaway holiday journey trip vacat visit | trek: hike trail | trip: getaway holiday journey travel vacat visit
trophi: award prize | troubl: issu problem | uncl: aunt cousin famili relat | universiti: colleg degre educ school
upset: depress sad | vacat: getaway holiday journey travel trip visit | vehicl: car drive | vintag: ancient old
visit: getaway holiday journey travel trip vacat | volunt: assist help support | want: go intend plan
websit: internet onlin | wife: husband marri partner spous | wine: beer coffe drink tea | wish: dream goal hope
wood: forest natur | work: career employ job occup profess | workout: exercis fit gym | workshop: confer event
worri: anxieti stress | write: author writer | writer: author write | young: childhood kid
"""
)

# Word → things of that kind.
KINDS = _table(
    """
activ: bike camp danc hike museum paint run swim yoga | anim: bear bird cat deer dog eleph fish hors lion turtl wolf
app: instagram netflix spotifi uber youtub | art: draw paint potteri sculptur sketch
car: bmw ford honda prius tesla toyota
citi: angel barcelona boston chicago francisco london pari rome seattl tokyo york
cloth: dress hat jacket jean shirt shoe sweater | color: black blue brown gray green orang pink purpl red white yellow
countri: america canada china england franc germani india ireland itali japan mexico spain sweden usa
craft: knit potteri sew woodwork | degre: bachelor graduat major master phd
dessert: browni cake cheesecak chocol cooki pie pud | devic: camera headphon laptop phone tablet watch
diseas: asthma cancer diabet flu | drink: beer cocktail coffe juic smoothi soda tea water wine
emot: angri anxious excit grate happi nervous proud sad | event: concert confer festiv parad parti race wed workshop
exercis: cardio cycl pilat run swim weight yoga
famili: aunt brother cousin dad daughter father grandma grandpa husband mom mother sister son uncl wife
flower: daisi lili orchid rose sunflow tulip
food: bread burger chees chick curri pasta pizza rice salad sandwich soup sushi taco
fruit: appl banana blueberri grape mango orang peach strawberri
furnitur: bed bookshelf chair couch desk shelf sofa tabl | game: chess consol nintendo playstat poker strategi xbox
genr: comedi drama fantasi fiction horror mysteri romanc thriller
hobbi: bake camp cook danc fish game garden hike knit paint photographi read
holiday: christma easter hallowe thanksgiv | injuri: ankl back fractur knee shoulder sprain wrist
instrument: bass cello clarinet drum flute guitar keyboard piano saxophon trumpet ukulel violin
job: analyst artist chef consult design develop doctor engin lawyer manag nurs teacher waiter writer
languag: chines english french german italian japanes spanish | meal: breakfast brunch dinner lunch
media: facebook instagram tiktok twitter youtub | music: blue classic folk jazz metal pop rock
pet: bird cat dog fish hamster kitten parrot puppi rabbit snake turtl
place: beach cafe citi lake librari mountain museum park restaur
plant: basil flower herb orchid rose succul tomato tree | season: autumn fall spring summer winter
sport: basebal basketbal cycl footbal golf hockey run ski soccer surf swim tenni volleybal
state: california colorado florida michigan minnesota oregon texa washington | store: costco ikea target walmart
subject: biolog econom histori math psycholog scienc | symptom: cough fever headach nausea pain | tree: mapl oak pine
veget: broccoli carrot onion pepper potato spinach tomato | vehicl: bike bus car motorcycl suv truck van
weather: rain snow storm sun wind | websit: amazon ebay etsi
"""
)
