"""What people type to a coding agent: short corrections, and statements in German, French and Spanish.

Written before the rules that have to find them. Each has the kind that it must be kept with; a correction has the kind
of what it corrects. PASSING is what must not be kept, in the same languages.
"""

CORRECTIONS = [
    ("no, port 1100", "fact"),
    ("the port is 1100, not 4000", "fact"),
    ("wrong, it's node 22", "fact"),
    ("it's Postgres, not MySQL", "fact"),
    ("no, the branch is main", "fact"),
    ("that's wrong, the timeout is 30s", "fact"),
    ("we deploy from release, not main", "fact"),
    ("use pnpm, not npm", "preference"),
    ("just run `make test`, not pytest", "preference"),
    ("don't use jest here", "preference"),
    ("never force push", "preference"),
    ("no mocks please", "preference"),
    ("nope, snake_case", "preference"),
    ("I said dark mode only", "preference"),
    ("wrong file, edit src/app.ts", "preference"),
    ("stop adding comments", "preference"),
    ("in utc, not local time", "preference"),
    ("tabs instead of spaces", "preference"),
    ("actually, let's use Redis instead", "decision"),
    ("we don't need IE support", "decision"),
]

FOREIGN = [
    ("Wir haben uns für Postgres entschieden.", "decision"),
    ("Bitte immer pnpm statt npm verwenden.", "preference"),
    ("Nein, der Port ist 1100, nicht 4000.", "fact"),
    ("Ab jetzt antworte bitte auf Deutsch.", "preference"),
    ("Vorsicht mit billing.py, die Datei wird geprüft.", "warning"),
    ("Mach keine Commits ohne Tests.", "preference"),
    ("Wir brauchen keine Abwärtskompatibilität.", "decision"),
    ("On a décidé d'utiliser Postgres.", "decision"),
    ("Utilise toujours pnpm, pas npm.", "preference"),
    ("Non, le port est 1100, pas 4000.", "fact"),
    ("Ne touche jamais à schema.sql.", "preference"),
    ("Je préfère des petits commits.", "preference"),
    ("À partir de maintenant, réponds en français.", "preference"),
    ("Attention à billing.py, ce fichier est audité.", "warning"),
    ("Hemos decidido usar Postgres.", "decision"),
    ("Usa siempre pnpm, no npm.", "preference"),
    ("No, el puerto es 1100, no 4000.", "fact"),
    ("Nunca hagas push a main.", "preference"),
    ("Prefiero commits pequeños.", "preference"),
    ("No necesitamos compatibilidad con IE.", "decision"),
]

PASSING = [
    "Danke, das sieht gut aus.",
    "Kannst du die Tests noch einmal laufen lassen?",
    "Ja, mach das bitte.",
    "Schau dir mal die Logs an.",
    "Das ist immer noch kaputt.",
    "Merci, c'est parfait.",
    "Peux-tu relancer les tests ?",
    "Oui, vas-y.",
    "Regarde le fichier de log.",
    "Gracias, se ve bien.",
    "¿Puedes ejecutar las pruebas otra vez?",
    "Sí, adelante.",
    "Mira los registros.",
]
