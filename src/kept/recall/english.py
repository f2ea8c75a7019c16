"""Tables of English for questions about conversations: forms of a word, related words, kinds of things.

A question says "when did she buy"; the message says "we bought". A question asks for "instruments"; the message says
"piano". Tables only, as people write the words. `docs/stems.py` writes them to `messages/stems.py` and
`stems.py` in the form that an index holds, and nothing else reads this module: run it after every change. Rule:
general English of daily life, no names and nothing of any single conversation. A missing word costs a little, a wrong
one costs more.
"""

# Words about the asking, or about the order of things, rather than about the matter itself.
ASIDES = """
    remind wonder previous conversation chat mention recommend suggest provide name total number order earliest latest
    first last ago past passed follow up going back looking through thinking remember plan again trying confirm
    different specific example current currently recently lately day week month year time"""

# Forms of one word that no stemmer brings together, in groups.
FORMS = """
    go went gone | buy bought | give gave given | get got gotten | take took taken | make made | see saw seen
    write wrote written | teach taught | think thought | bring brought | catch caught | feel felt | find found
    meet met | run ran | begin began begun | sing sang sung song | swim swam swum | drive drove driven
    ride rode ridden | fly flew flown flight | grow grew grown | know knew known | draw drew drawn | eat ate eaten
    drink drank drunk | speak spoke spoken speech | break broke broken | choose chose chosen choice | wear wore worn
    win won | lose lost loss | leave left | keep kept | sleep slept | spend spent | send sent | build built
    tell told | say said | sell sold sale | hold held | hear heard | lead led | sit sat | stand stood
    understand understood | become became | come came | fall fell fallen | forget forgot forgotten
    hide hid hidden | lend lent | pay paid payment | shoot shot | show shown | steal stole stolen
    throw threw thrown | wake woke woken | fight fought | seek sought | feed fed | bake baker bakery
    marry marriage wedding | die death dead | child children kid | foot feet | tooth teeth | man men
    woman women | mouse mice | life lives | wife wives | good better best | bad worse worst"""

# Words that stand for each other in talk, in groups.
RELATED = """
    job work career occupation profession employ | kid child son daughter toddler baby
    husband wife spouse partner marry | mom mother mum | dad father | parent mom dad mother father
    sibling brother sister | grandparent grandma grandpa grandmother grandfather
    relative family aunt uncle cousin | friend buddy pal
    movie film cinema | picture photo image photograph camera | buy purchase acquire order
    trip travel vacation holiday journey visit getaway | hike trail trek | car vehicle drive | house home apartment
    company business firm startup | store shop boutique | doctor physician clinic hospital
    ill sick disease illness health | hurt injury injure pain | happy joy excited thrilled | sad upset depressed
    afraid scared fear | angry mad frustrated | tired exhausted stress | begin start launch | end finish complete
    quit leave resign | plan intend going want | hope wish dream goal | like love enjoy favorite fan | hate dislike
    help support assist volunteer | learn study class course lesson | teach teacher instructor coach
    school college university education degree | contest competition tournament championship | prize award trophy
    present gift | celebrate celebration party birthday anniversary | concert show gig performance stage
    exercise workout gym fitness | run jog marathon race | eat meal food dinner lunch breakfast | cook recipe dish
    dessert cake pie cookie | drink coffee tea wine beer | dog puppy pup | cat kitten | pet dog cat puppy kitten
    money cost price pay dollar | cheap discount sale deal | big large huge | small little tiny | new recent
    old ancient vintage | childhood kid young | meet encounter introduce | talk chat discuss conversation
    say tell mention | think believe opinion | recommend suggest suggestion advice | decide decision choose
    move relocate relocation | live reside residence | build construct create make | fix repair | paint art artwork
    artist painter | write author writer | book novel read | song music track | musician singer band
    game gaming play | team club squad | phone mobile smartphone | computer laptop pc | internet online website
    garden gardening plant flower | forest woods nature | ocean sea beach | lake river | mountain hill peak | city town
    country nation abroad | religion church faith spiritual belief | charity donate donation fundraiser
    organization group nonprofit | event conference workshop | meeting appointment | anxiety stress worry
    calm relax peaceful | proud achievement accomplish | challenge struggle difficult hard | problem issue trouble
    change transition transform | motivate inspire inspiration | relationship dating partner boyfriend girlfriend single
    born birth | funeral death | hobby interest passion | skill talent | nickname name called | brand model"""

# A kind of things, and things of that kind: asked for by the one, told by the other. One way only.
KINDS = """
    pet: dog cat puppy kitten bird fish hamster rabbit turtle snake parrot
    animal: dog cat horse bird fish bear deer wolf lion elephant turtle
    instrument: guitar piano violin drum flute clarinet cello saxophone trumpet ukulele bass keyboard
    sport: soccer football basketball baseball tennis golf hockey volleyball swimming running cycling skiing surfing
    game: chess poker xbox playstation nintendo console strategy
    food: pizza pasta salad soup sandwich burger chicken rice sushi taco curry bread cheese
    meal: breakfast lunch dinner brunch | dessert: cake pie cookie chocolate brownie cheesecake pudding
    drink: coffee tea wine beer juice smoothie cocktail soda water
    fruit: apple banana orange strawberry blueberry mango grape peach
    vegetable: carrot tomato potato spinach broccoli pepper onion
    country: usa america canada england france germany italy spain japan china india mexico sweden ireland
    state: california texas florida oregon michigan minnesota colorado washington
    city: york paris london tokyo seattle chicago boston francisco angeles rome barcelona
    place: park beach museum restaurant cafe library city mountain lake
    job: engineer teacher nurse doctor lawyer manager designer developer artist writer chef waiter consultant analyst
    family: mom dad mother father sister brother son daughter wife husband grandma grandpa aunt uncle cousin
    vehicle: car truck bike motorcycle van suv bus | car: toyota honda ford tesla bmw prius
    clothes: shirt dress shoes jacket jeans sweater hat
    color: red blue green yellow orange purple pink black white brown gray
    music: rock jazz classical pop metal folk blues
    genre: fantasy mystery thriller romance horror comedy drama fiction
    hobby: painting photography reading gardening hiking cooking baking knitting dancing gaming fishing camping
    activity: hiking camping swimming painting running yoga biking dancing museum
    exercise: yoga running weights pilates cardio swimming cycling | art: painting drawing sculpture pottery sketch
    craft: pottery knitting sewing woodworking | weather: rain snow sun storm wind
    season: spring summer fall autumn winter | holiday: christmas thanksgiving halloween easter
    furniture: couch sofa table chair bed desk shelf bookshelf | device: phone laptop tablet watch camera headphones
    disease: cancer diabetes asthma flu | injury: ankle knee back wrist shoulder sprain fracture
    symptom: headache fever cough pain nausea | emotion: happy sad angry anxious proud grateful nervous excited
    degree: bachelor master phd graduate major | subject: math science history biology psychology economics
    event: concert wedding party conference parade festival race workshop
    language: english spanish french german italian japanese chinese
    plant: flower rose tree succulent orchid tomato basil herb | flower: rose sunflower tulip lily daisy orchid
    tree: oak pine maple | app: netflix spotify instagram youtube uber | website: amazon etsy ebay
    media: instagram facebook twitter tiktok youtube | store: target walmart ikea costco"""

# Words that say when. Not "may", which mostly says something else.
TIMES = """
    january february march april june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    yesterday today tomorrow tonight last next week weekend month year day ago morning evening afternoon night recently
    soon since spring summer autumn winter christmas"""
NUMBERS = """
    one two three four five six seven eight nine ten eleven twelve twenty thirty hundred dozen couple several both first
    second third once twice half"""
