"""The numbers: ranking metrics, their intervals, and the registry that says what each one is. numpy only here."""
